# GPU_EXACT_PYTHON_RUN: the interpreter that runs tests and demo, with a stock XGBoost in reach;
# targets libxgboost, the library that this XGBoost loads, and xgboost_headers: for C++ tests.
include("${CMAKE_CURRENT_LIST_DIR}/FindPython.cmake")
set(GPU_EXACT_PYTHON_ENV venv CACHE STRING
    "Runs tests and demo: venv (in the build folder), current (GPU_EXACT_PYTHON as it is), none")
set(GPU_EXACT_XGBOOST auto CACHE STRING
    "XGBoost in venv: cpu (xgboost-cpu), cuda (xgboost), auto (cuda where a GPU is visible)")
set(GPU_EXACT_XGBOOST_VERSION auto CACHE STRING
    "Release of XGBoost in venv: ${GPU_EXACT_RELEASES_TEXT}; auto: the newest that Python takes")
set_property(CACHE GPU_EXACT_PYTHON_ENV PROPERTY STRINGS venv current none)
set_property(CACHE GPU_EXACT_XGBOOST PROPERTY STRINGS auto cpu cuda)
set_property(CACHE GPU_EXACT_XGBOOST_VERSION PROPERTY STRINGS auto ${GPU_EXACT_RELEASES})
set(_packages numpy scipy scikit-learn pandas pyarrow polars matplotlib
    dask distributed pytest pyelftools)
if(GPU_EXACT_GPU_VISIBLE)
  list(APPEND _packages nvidia-ml-py)  # of the benchmarks
endif()

function(gpu_exact_xgboost_requirement out_requirement)
  set(distribution_cpu xgboost-cpu)
  set(distribution_cuda xgboost)
  set(distribution_auto ${distribution_cpu})
  if(GPU_EXACT_GPU_VISIBLE)
    set(distribution_auto ${distribution_cuda})
  endif()
  if(NOT DEFINED distribution_${GPU_EXACT_XGBOOST})
    message(FATAL_ERROR "GPU_EXACT_XGBOOST=${GPU_EXACT_XGBOOST}: say auto, cpu or cuda.")
  endif()
  if(NOT GPU_EXACT_XGBOOST_VERSION IN_LIST GPU_EXACT_RELEASES
     AND NOT GPU_EXACT_XGBOOST_VERSION STREQUAL auto)
    message(FATAL_ERROR "GPU_EXACT_XGBOOST_VERSION=${GPU_EXACT_XGBOOST_VERSION}: say auto, "
                        "${GPU_EXACT_RELEASES_TEXT}.")
  endif()
  set(version "==${GPU_EXACT_XGBOOST_VERSION}")
  if(GPU_EXACT_XGBOOST_VERSION STREQUAL auto)
    set(version "<=${GPU_EXACT_NEWEST_RELEASE}")
  endif()
  set(${out_requirement} "${distribution_${GPU_EXACT_XGBOOST}}${version}" PARENT_SCOPE)
endfunction()

function(gpu_exact_make_venv venv)
  set(wanted ${ARGN})
  set(stamp "${venv}/installed.txt")
  if(EXISTS "${stamp}")
    file(READ "${stamp}" installed)
    if(installed STREQUAL "${wanted}")
      return()
    endif()
  endif()
  # Made anew: the two XGBoost wheels share one folder, so neither can replace the other cleanly.
  file(REMOVE_RECURSE "${venv}")
  gpu_exact_find_python(base)
  execute_process(COMMAND "${base}" -m venv "${venv}" RESULT_VARIABLE failed
                  OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR
      "`${base} -m venv` failed: install its venv module (Debian, Ubuntu: python3-venv), or name "
      "another interpreter with -DGPU_EXACT_PYTHON=<interpreter>.")
  endif()
  list(JOIN wanted " " words)
  message(STATUS "Installing ${words} into ${venv}")
  execute_process(
    COMMAND "${venv}/bin/python" -m pip install --quiet --disable-pip-version-check ${wanted}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR
      "pip could not install the packages that tests and demo need. Check the network and pip's "
      "settings, or use an interpreter that has them: -DGPU_EXACT_PYTHON_ENV=current "
      "-DGPU_EXACT_PYTHON=<interpreter>. To build the module alone: -DGPU_EXACT_PYTHON_ENV=none "
      "-DGPU_EXACT_BUILD_TESTS=OFF. pip said:\n${output}")
  endif()
  file(WRITE "${stamp}" "${wanted}")
endfunction()

# Sets version and path of the libxgboost that the interpreter's XGBoost loads.
function(gpu_exact_ask_xgboost python out_version out_path)
  execute_process(
    COMMAND "${python}" -c "import numpy, scipy, sklearn, pandas, pyarrow, pytest, xgboost
from xgboost import libpath
print(xgboost.__version__, libpath.find_lib_path()[0], sep=';')"
    RESULT_VARIABLE failed OUTPUT_VARIABLE answer ERROR_VARIABLE error
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    list(JOIN _packages " " words)
    message(FATAL_ERROR
      "${python} lacks a package that tests and demo need. Install xgboost-cpu or xgboost "
      "${GPU_EXACT_NEWEST_RELEASE}, and ${words}; a venv of the build folder is made anew once it "
      "is deleted. Python said:\n${error}")
  endif()
  list(GET answer 0 version)
  list(GET answer 1 path)
  if(NOT version IN_LIST GPU_EXACT_RELEASES)
    message(FATAL_ERROR
      "${python} has XGBoost ${version}; this plugin is for ${GPU_EXACT_RELEASES_TEXT}. Install "
      "that, or let the build make its own environment with -DGPU_EXACT_PYTHON_ENV=venv.")
  endif()
  set(${out_version} ${version} PARENT_SCOPE)
  set(${out_path} "${path}" PARENT_SCOPE)
endfunction()

# A wheel's libxgboost.so calls itself libxgboost.so.3, or libxgboost.so before 3.3, and looks for its
# OpenMP runtime beside its own folder: a mirror of links gives a linked program both.
function(gpu_exact_import_libxgboost version path)
  set(mirror "${CMAKE_BINARY_DIR}/libxgboost")
  file(REMOVE_RECURSE "${mirror}")
  file(MAKE_DIRECTORY "${mirror}/xgboost/lib")
  foreach(name IN ITEMS libxgboost.so libxgboost.so.3)
    file(CREATE_LINK "${path}" "${mirror}/xgboost/lib/${name}" SYMBOLIC)
  endforeach()
  cmake_path(GET path PARENT_PATH folder)
  file(GLOB bundled "${folder}/../../xgboost*.libs")
  foreach(libraries IN LISTS bundled)
    cmake_path(GET libraries FILENAME name)
    file(CREATE_LINK "${libraries}" "${mirror}/${name}" SYMBOLIC)
  endforeach()
  add_library(libxgboost SHARED IMPORTED GLOBAL)
  set(soname libxgboost.so.3)
  if(version VERSION_LESS 3.3)
    set(soname libxgboost.so)
  endif()
  set_target_properties(libxgboost PROPERTIES IMPORTED_SONAME ${soname}
                        IMPORTED_LOCATION "${mirror}/xgboost/lib/libxgboost.so")
endfunction()

if(GPU_EXACT_PYTHON_ENV STREQUAL none)
  if(GPU_EXACT_BUILD_TESTS)
    message(FATAL_ERROR "The tests run in Python too: GPU_EXACT_PYTHON_ENV=none goes with "
                        "-DGPU_EXACT_BUILD_TESTS=OFF.")
  endif()
  return()
elseif(GPU_EXACT_PYTHON_ENV STREQUAL venv)
  gpu_exact_xgboost_requirement(_requirement)
  gpu_exact_make_venv("${CMAKE_BINARY_DIR}/venv" ${_requirement} ${_packages})
  set(GPU_EXACT_PYTHON_RUN "${CMAKE_BINARY_DIR}/venv/bin/python")
elseif(GPU_EXACT_PYTHON_ENV STREQUAL current)
  gpu_exact_find_python(GPU_EXACT_PYTHON_RUN)
else()
  message(FATAL_ERROR "GPU_EXACT_PYTHON_ENV=${GPU_EXACT_PYTHON_ENV}: say venv, current or none.")
endif()
gpu_exact_ask_xgboost("${GPU_EXACT_PYTHON_RUN}" _version _path)
message(STATUS "XGBoost ${_version} for tests and demo: ${_path}")
gpu_exact_import_libxgboost(${_version} "${_path}")
add_library(xgboost_headers ALIAS xgboost_headers_${GPU_EXACT_LAYOUT_OF_${_version}})  # of its release
