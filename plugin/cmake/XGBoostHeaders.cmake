# Targets xgboost_headers_<layout>: XGBoost's headers, internal ones too, for the sources of an
# adapter. GPU_EXACT_XGBOOST_SOURCES: the source trees that they are of.
include("${CMAKE_CURRENT_LIST_DIR}/FindPython.cmake")
set(XGBOOST_SOURCE_DIR "" CACHE STRING
    "XGBoost source trees, of ${GPU_EXACT_LAYOUTS} or of some; the others are downloaded with pip")

function(gpu_exact_download_xgboost release out_dir)
  set(name xgboost-${release})
  set(deps "${CMAKE_BINARY_DIR}/_deps")
  set(${out_dir} "${deps}/${name}/cpp_src" PARENT_SCOPE)
  if(EXISTS "${deps}/${name}.unpacked")
    return()
  endif()
  gpu_exact_find_python(python)
  message(STATUS "Downloading the source distribution of XGBoost ${release}")
  set(archive "${deps}/${name}.tar.gz")
  file(MAKE_DIRECTORY "${deps}")
  execute_process(
    COMMAND "${python}" "${PROJECT_SOURCE_DIR}/plugin/cmake/download_source.py" ${release}
            "${archive}" ${GPU_EXACT_SHA256_${release}}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR
      "XGBoost's headers could not be downloaded by pip of ${python}. Check the "
      "network and pip's settings, or name a source tree of XGBoost ${release} "
      "that you have with -DXGBOOST_SOURCE_DIR=<path>. pip said:\n${output}")
  endif()
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${deps}")
  file(TOUCH "${deps}/${name}.unpacked")
endfunction()

# Sets the version of a source tree, and its root: that of the headers.
function(gpu_exact_look_into tree out_version out_root)
  set(root "${tree}")
  if(EXISTS "${root}/cpp_src")  # the root of a source distribution; a checkout has no such folder
    string(APPEND root "/cpp_src")
  endif()
  foreach(header IN ITEMS include/xgboost/version_config.h dmlc-core/include/dmlc/registry.h
                          src/tree/param.h)
    if(NOT EXISTS "${root}/${header}")
      message(FATAL_ERROR
        "XGBOOST_SOURCE_DIR: ${root}/${header} is missing. Name the root of XGBoost's source "
        "distribution, or of a checkout with its submodules.")
    endif()
  endforeach()
  file(STRINGS "${root}/include/xgboost/version_config.h" parts REGEX "define XGBOOST_VER_")
  string(REGEX MATCHALL "[0-9]+" version "${parts}")
  list(JOIN version "." version)
  set(${out_version} ${version} PARENT_SCOPE)
  set(${out_root} "${root}" PARENT_SCOPE)
endfunction()

foreach(_tree IN LISTS XGBOOST_SOURCE_DIR)
  gpu_exact_look_into("${_tree}" _version _root)
  if(NOT _version IN_LIST GPU_EXACT_RELEASES)
    message(FATAL_ERROR
      "${_root} is XGBoost ${_version}; this plugin is for ${GPU_EXACT_RELEASES_TEXT}. Check "
      "out v${GPU_EXACT_NEWEST_RELEASE} there.")
  endif()
  set(_source_${GPU_EXACT_LAYOUT_OF_${_version}} "${_root}")
endforeach()

set(GPU_EXACT_XGBOOST_SOURCES "")
foreach(_layout IN LISTS GPU_EXACT_LAYOUTS)
  if(NOT DEFINED _source_${_layout})
    gpu_exact_download_xgboost(${_layout} _source_${_layout})
  endif()
  set(_root "${_source_${_layout}}")
  list(APPEND GPU_EXACT_XGBOOST_SOURCES "${_root}")
  add_library(xgboost_headers_${_layout} INTERFACE)
  target_include_directories(xgboost_headers_${_layout} SYSTEM INTERFACE
    "${_root}" "${_root}/include" "${_root}/dmlc-core/include")
  target_compile_definitions(xgboost_headers_${_layout} INTERFACE DMLC_LOG_CUSTOMIZE=1)
endforeach()
