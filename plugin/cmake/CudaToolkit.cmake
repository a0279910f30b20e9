# nvcc: found, new enough, and for which GPUs it compiles.
set(GPU_EXACT_CUDA_MINIMUM 12.9)
string(CONCAT _cuda_remedy "Install the CUDA toolkit ${GPU_EXACT_CUDA_MINIMUM} or newer, or name "
                           "its compiler with -DCMAKE_CUDA_COMPILER=<toolkit>/bin/nvcc.")

if(NOT CMAKE_CUDA_COMPILER)
  if(DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER "$ENV{CUDACXX}")
  else()
    find_program(GPU_EXACT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
                 PATH_SUFFIXES bin)
    mark_as_advanced(GPU_EXACT_NVCC)
    if(NOT GPU_EXACT_NVCC)
      message(FATAL_ERROR "nvcc was not found. ${_cuda_remedy}")
    endif()
    set(CMAKE_CUDA_COMPILER "${GPU_EXACT_NVCC}")
  endif()
endif()

# Asked before CMake tries it: an unknown architecture or host compiler would hide the real reason.
execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version OUTPUT_VARIABLE _nvcc_version
                ERROR_QUIET RESULT_VARIABLE _nvcc_failed)
if(_nvcc_failed OR NOT _nvcc_version MATCHES "release ([0-9]+\\.[0-9]+)")
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} does not run as nvcc. ${_cuda_remedy}")
elseif(CMAKE_MATCH_1 VERSION_LESS GPU_EXACT_CUDA_MINIMUM)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_MATCH_1}, too old. ${_cuda_remedy}")
endif()

execute_process(COMMAND nvidia-smi --list-gpus OUTPUT_VARIABLE _gpus ERROR_QUIET
                RESULT_VARIABLE _no_driver)
set(GPU_EXACT_GPU_VISIBLE FALSE)
if(_no_driver EQUAL 0 AND _gpus MATCHES "GPU 0")
  set(GPU_EXACT_GPU_VISIBLE TRUE)
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  if(GPU_EXACT_GPU_VISIBLE AND NOT SKBUILD)  # a wheel is for other machines, too
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    # Machine code of one generation runs on its later chips too; PTX serves those still to come.
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90-real 100-real 120)
  endif()
endif()

enable_language(CUDA)
message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures: ${CMAKE_CUDA_ARCHITECTURES}")
