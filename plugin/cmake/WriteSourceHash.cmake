# Run as a script: cmake -DROOT=<sources> -DOUTPUT=<source_hash.inc> -P WriteSourceHash.cmake
# Writes the hash of the sources as a C string; the file is left alone where it has not changed.
# tests/gpu_report.py computes the same: keep both alike.
cmake_minimum_required(VERSION 3.25)
set(files "${ROOT}/CMakeLists.txt")
foreach(folder IN ITEMS plugin src include tests)
  file(GLOB_RECURSE found LIST_DIRECTORIES false "${ROOT}/${folder}/*")
  list(APPEND files ${found})
endforeach()
set(paths "")
foreach(file IN LISTS files)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE path)
  # What is made and not written: see made() in gpu_report.py.
  if(NOT path MATCHES "(^|/)(\\.|__pycache__|_skbuild|dist/)|\\.egg-info(/|$)|\\.(pyc|so|o)$"
     AND NOT path MATCHES "^tests/(README\\.md|(gpu_report|ways_in|xgboost_suite|trust_report|mutants_explained)\\.json|mutants_(host|kernels)\\.jsonl)$")
    list(APPEND paths "${path}")
  endif()
endforeach()
list(SORT paths COMPARE STRING)
set(lines "")
foreach(path IN LISTS paths)
  file(SHA256 "${ROOT}/${path}" hash)
  string(APPEND lines "${path} ${hash}\n")
endforeach()
string(SHA256 hash "${lines}")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "\"${hash}\"\n" @ONLY)
