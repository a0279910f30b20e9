# What plugin/python/xgboost_gpu_exact/versions.py says. GPU_EXACT_VERSION: of this plugin;
# GPU_EXACT_RELEASES: the releases of XGBoost that it serves, GPU_EXACT_RELEASES_TEXT for messages,
# GPU_EXACT_NEWEST_RELEASE, and GPU_EXACT_SHA256_<release> of each one's source distribution.
set(_versions "${CMAKE_CURRENT_LIST_DIR}/../python/xgboost_gpu_exact/versions.py")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_versions}")
file(STRINGS "${_versions}" _version REGEX "^__version__ = ")
string(REGEX MATCH "[0-9.]+" GPU_EXACT_VERSION "${_version}")
file(STRINGS "${_versions}" _releases REGEX "^    \"[0-9.]+\": \"[0-9a-f]+\",$")
set(GPU_EXACT_RELEASES "")
foreach(_line IN LISTS _releases)
  string(REGEX MATCH "\"([0-9.]+)\": \"([0-9a-f]+)\"" _ "${_line}")
  list(APPEND GPU_EXACT_RELEASES ${CMAKE_MATCH_1})
  set(GPU_EXACT_SHA256_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()
list(GET GPU_EXACT_RELEASES -1 GPU_EXACT_NEWEST_RELEASE)
list(JOIN GPU_EXACT_RELEASES " or " GPU_EXACT_RELEASES_TEXT)
