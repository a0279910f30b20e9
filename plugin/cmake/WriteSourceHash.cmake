# Run as a script: cmake -DROOT=<sources> -DOUTPUT=<source_hash.inc> -P WriteSourceHash.cmake
# Writes the hash of all that is compiled as a C string; the file is left alone where it has not changed.
# source_hash() of tests/proof.py computes the same: keep both alike.
cmake_minimum_required(VERSION 3.25)
set(files CMakeLists.txt plugin/python/xgboost_gpu_exact/versions.py)
set(folders src include plugin/cmake plugin/load plugin/hooks plugin/train plugin/workers)
list(TRANSFORM folders REPLACE ".+" "${ROOT}/\\0/*")
file(GLOB_RECURSE folders LIST_DIRECTORIES false RELATIVE "${ROOT}" ${folders})
file(GLOB plugin LIST_DIRECTORIES false RELATIVE "${ROOT}" "${ROOT}/plugin/*")
list(APPEND files ${folders} ${plugin})
list(FILTER files INCLUDE REGEX
     "(CMakeLists\\.txt|/versions\\.py|/[^./][^/]*\\.(cc|h|cu|cuh|in|map|cmake))$")
list(SORT files COMPARE STRING)
set(lines "")
foreach(file IN LISTS files)
  file(SHA256 "${ROOT}/${file}" hash)
  string(APPEND lines "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${lines}")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "\"${hash}\"\n" @ONLY)
