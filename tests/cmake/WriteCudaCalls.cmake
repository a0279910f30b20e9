# Run as a script: cmake -DNM=<nm> -DOBJECTS=<a;b> -DOUTPUT=<cuda_calls.inc> -P WriteCudaCalls.cmake
# Lists the CUDA calls of the objects that can fail, as CUDA_CALL(index, name), and beside that file,
# in wrap.rsp, the linker's options that lead them to support/cuda_faults.cc.
set(calls "")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" --undefined-only --format=posix "${object}"
                  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(^|\n)(cuda[A-Z]|__cudaLaunch)[A-Za-z_0-9]*" names "${lines}")
  list(APPEND calls ${names})
endforeach()
list(TRANSFORM calls STRIP)
list(REMOVE_DUPLICATES calls)
list(SORT calls)
list(REMOVE_ITEM calls cudaGetErrorName cudaGetErrorString)
list(TRANSFORM calls PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE options)
list(JOIN options "\n" options)
# These are written by hand.
list(REMOVE_ITEM calls cudaGetLastError cudaPeekAtLastError cudaMalloc cudaFree cudaHostAlloc
                       cudaFreeHost cudaEventCreateWithFlags cudaEventDestroy
                       cudaStreamCreateWithFlags cudaStreamDestroy cudaIpcOpenMemHandle
                       cudaIpcCloseMemHandle cudaMemGetInfo)
foreach(call IN LISTS calls)
  if(call MATCHES "Malloc|Free|Alloc|Create|Destroy")
    message(FATAL_ERROR "${call} takes or gives back something: add it to support/cuda_faults.cc.")
  endif()
endforeach()
set(lines "")
set(index 0)
foreach(call IN LISTS calls)
  string(APPEND lines "CUDA_CALL(${index}, ${call})\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}" "${lines}")
cmake_path(GET OUTPUT PARENT_PATH folder)
file(WRITE "${folder}/wrap.rsp" "${options}\n")
