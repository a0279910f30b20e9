# What plugin/python/xgboost_gpu_exact/versions.py says. GPU_EXACT_VERSION: of this plugin,
# GPU_EXACT_VERSION_NUMBER without `.dev0`;
# GPU_EXACT_LAYOUTS: of XGBoost's classes, GPU_EXACT_SHA256_<layout> of the source distribution that
# each one is named after; GPU_EXACT_RELEASES: the releases of XGBoost that are served, with
# GPU_EXACT_LAYOUT_OF_<release>, GPU_EXACT_RELEASES_TEXT for messages, GPU_EXACT_NEWEST_RELEASE.
set(_versions "${CMAKE_CURRENT_LIST_DIR}/../python/xgboost_gpu_exact/versions.py")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_versions}")
file(STRINGS "${_versions}" _version REGEX "^__version__ = ")
string(REGEX MATCH "([0-9]+[.][0-9]+[.][0-9]+)[^\"]*" GPU_EXACT_VERSION "${_version}")
set(GPU_EXACT_VERSION_NUMBER ${CMAKE_MATCH_1})
file(STRINGS "${_versions}" _lines REGEX "^    \"[0-9.]+\": \"[0-9a-f.]+\",$")
set(GPU_EXACT_LAYOUTS "")
set(GPU_EXACT_RELEASES "")
foreach(_line IN LISTS _lines)
  string(REGEX MATCH "\"([0-9.]+)\": \"([0-9a-f.]+)\"" _ "${_line}")
  set(_name ${CMAKE_MATCH_1})
  set(_value ${CMAKE_MATCH_2})
  if(_value MATCHES "[.]")
    list(APPEND GPU_EXACT_RELEASES ${_name})
    set(GPU_EXACT_LAYOUT_OF_${_name} ${_value})
  else()
    list(APPEND GPU_EXACT_LAYOUTS ${_name})
    set(GPU_EXACT_SHA256_${_name} ${_value})
  endif()
endforeach()
list(GET GPU_EXACT_RELEASES -1 GPU_EXACT_NEWEST_RELEASE)
list(JOIN GPU_EXACT_RELEASES ", " GPU_EXACT_RELEASES_TEXT)
string(REGEX REPLACE ", ([0-9.]+)$" " or \\1" GPU_EXACT_RELEASES_TEXT "${GPU_EXACT_RELEASES_TEXT}")
