# Target xgboost_headers: XGBoost's headers, internal ones too, for the sources in plugin/ only.
include("${CMAKE_CURRENT_LIST_DIR}/FindPython.cmake")
set(XGBOOST_SOURCE_DIR "" CACHE PATH
    "XGBoost ${GPU_EXACT_RELEASES_TEXT} source tree; empty: downloaded with pip")

function(gpu_exact_download_xgboost out_dir)
  set(release ${GPU_EXACT_NEWEST_RELEASE})
  set(name xgboost-${release})
  set(deps "${CMAKE_BINARY_DIR}/_deps")
  set(${out_dir} "${deps}/${name}" PARENT_SCOPE)
  if(EXISTS "${deps}/${name}.unpacked")
    return()
  endif()
  gpu_exact_find_python(python)
  message(STATUS "Downloading the source distribution of XGBoost ${release}")
  # pip runs an archive's build backend, for its metadata: with a hash, not that of another archive.
  file(WRITE "${deps}/${name}.txt"
       "xgboost==${release} --hash=sha256:${GPU_EXACT_SHA256_${release}}\n")
  execute_process(
    COMMAND "${python}" -m pip download --quiet --no-deps --no-binary xgboost --require-hashes
            --dest "${deps}" --requirement "${deps}/${name}.txt"
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(archive "${deps}/${name}.tar.gz")
  if(failed OR NOT EXISTS "${archive}")
    message(FATAL_ERROR
      "XGBoost's headers could not be downloaded: `${python} -m pip download` failed. Check the "
      "network and pip's settings, or name a source tree of XGBoost ${release} "
      "that you have with -DXGBOOST_SOURCE_DIR=<path>. pip said:\n${output}")
  endif()
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${deps}")
  file(TOUCH "${deps}/${name}.unpacked")
endfunction()

if(XGBOOST_SOURCE_DIR)
  set(_xgboost "${XGBOOST_SOURCE_DIR}")
else()
  gpu_exact_download_xgboost(_xgboost)
endif()
if(EXISTS "${_xgboost}/cpp_src")  # the root of a source distribution; a checkout has no such folder
  string(APPEND _xgboost "/cpp_src")
endif()

foreach(_header IN ITEMS include/xgboost/version_config.h dmlc-core/include/dmlc/registry.h
                         src/tree/param.h)
  if(NOT EXISTS "${_xgboost}/${_header}")
    message(FATAL_ERROR
      "XGBOOST_SOURCE_DIR: ${_xgboost}/${_header} is missing. Name the root of XGBoost's source "
      "distribution, or of a checkout with its submodules.")
  endif()
endforeach()
file(STRINGS "${_xgboost}/include/xgboost/version_config.h" _parts REGEX "define XGBOOST_VER_")
string(REGEX MATCHALL "[0-9]+" _version "${_parts}")
list(JOIN _version "." _version)
if(NOT _version IN_LIST GPU_EXACT_RELEASES)
  message(FATAL_ERROR
    "${_xgboost} is XGBoost ${_version}; this plugin is for ${GPU_EXACT_RELEASES_TEXT}. Check "
    "out v${GPU_EXACT_NEWEST_RELEASE} there.")
endif()

set(GPU_EXACT_XGBOOST_SOURCE "${_xgboost}")
add_library(xgboost_headers INTERFACE)
target_include_directories(xgboost_headers SYSTEM INTERFACE
  "${_xgboost}" "${_xgboost}/include" "${_xgboost}/dmlc-core/include")
target_compile_definitions(xgboost_headers INTERFACE DMLC_LOG_CUSTOMIZE=1)
