# nvcc, the machine's or else PyPI's, and for which GPUs it compiles.
include("${CMAKE_CURRENT_LIST_DIR}/FindPython.cmake")
set(GPU_EXACT_CUDA_MINIMUM 12.9)
option(GPU_EXACT_CUDA_FROM_PYPI
       "Install nvcc from PyPI into the build folder where no CUDA toolkit will do" ON)
option(GPU_EXACT_ALL_GPUS "Compile for every GPU that the module serves, not for those here" OFF)
string(CONCAT _cuda_remedy "Install the CUDA toolkit ${GPU_EXACT_CUDA_MINIMUM} or newer, or name "
                           "its compiler with -DCMAKE_CUDA_COMPILER=<toolkit>/bin/nvcc")

# Sets what is wrong with a compiler; nothing where it will do. Asked before CMake tries it: an unknown
# architecture or host compiler would hide the real reason.
function(gpu_exact_judge_nvcc nvcc out_fault)
  execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE version ERROR_QUIET
                  RESULT_VARIABLE failed)
  set(${out_fault} "" PARENT_SCOPE)
  if(failed OR NOT version MATCHES "release ([0-9]+\\.[0-9]+)")
    set(${out_fault} "${nvcc} does not run as nvcc" PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 VERSION_LESS GPU_EXACT_CUDA_MINIMUM)
    set(${out_fault} "${nvcc} is CUDA ${CMAKE_MATCH_1}, too old" PARENT_SCOPE)
  endif()
endfunction()

# For find_program(): takes the first that will do, and keeps what is wrong with another.
function(gpu_exact_validate_nvcc out_valid nvcc)
  gpu_exact_judge_nvcc("${nvcc}" fault)
  if(fault)
    set(${out_valid} FALSE PARENT_SCOPE)
    set_property(GLOBAL PROPERTY GPU_EXACT_NVCC_FAULT "${fault}")
  endif()
endfunction()

# Installs nvcc from PyPI into the build folder. `fault`: why the machine's will not do.
function(gpu_exact_install_nvcc fault out_nvcc)
  if(NOT GPU_EXACT_CUDA_FROM_PYPI)
    message(FATAL_ERROR "${fault}. ${_cuda_remedy}, or let the build install one from PyPI with "
                        "-DGPU_EXACT_CUDA_FROM_PYPI=ON.")
  endif()
  set(requirements "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/nvcc.txt")
  set(folder "${CMAKE_BINARY_DIR}/_deps/cuda")
  gpu_exact_find_python(python)
  message(STATUS "${fault}: installing nvcc from PyPI into ${folder}, 271 MB; "
                 "-DGPU_EXACT_CUDA_FROM_PYPI=OFF forbids it")
  file(REMOVE_RECURSE "${folder}")  # what an earlier try has left
  execute_process(
    COMMAND "${python}" -m pip install --quiet --disable-pip-version-check --no-deps
            --only-binary :all: --require-hashes --target "${folder}" --requirement "${requirements}"
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR
      "${fault}, and `${python} -m pip install` could not install one from PyPI. ${_cuda_remedy}; "
      "or check the network and pip's settings. pip said:\n${output}")
  endif()
  # Where nvcc.profile has the libraries; the wheels have them in lib.
  file(CREATE_LINK lib "${folder}/nvidia/cu13/lib64" SYMBOLIC)
  set(${out_nvcc} "${folder}/nvidia/cu13/bin/nvcc" PARENT_SCOPE)
endfunction()

if(NOT CMAKE_CUDA_COMPILER)
  if(DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER "$ENV{CUDACXX}")
  else()
    set_property(GLOBAL PROPERTY GPU_EXACT_NVCC_FAULT "nvcc was not found")
    find_program(GPU_EXACT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
                 PATH_SUFFIXES bin VALIDATOR gpu_exact_validate_nvcc)
    if(NOT GPU_EXACT_NVCC)
      get_property(_fault GLOBAL PROPERTY GPU_EXACT_NVCC_FAULT)
      gpu_exact_install_nvcc("${_fault}" _nvcc)
      # The folder keeps its compiler, as CMake wants it, whatever the machine gets later.
      set(GPU_EXACT_NVCC "${_nvcc}" CACHE FILEPATH "The compiler of CUDA" FORCE)
    endif()
    mark_as_advanced(GPU_EXACT_NVCC)
    set(CMAKE_CUDA_COMPILER "${GPU_EXACT_NVCC}")
  endif()
endif()
gpu_exact_judge_nvcc("${CMAKE_CUDA_COMPILER}" _fault)
if(_fault)
  message(FATAL_ERROR "${_fault}. ${_cuda_remedy}.")
endif()

execute_process(COMMAND nvidia-smi --list-gpus OUTPUT_VARIABLE _gpus ERROR_QUIET
                RESULT_VARIABLE _no_driver)
set(GPU_EXACT_GPU_VISIBLE FALSE)
if(_no_driver EQUAL 0 AND _gpus MATCHES "GPU 0")
  set(GPU_EXACT_GPU_VISIBLE TRUE)
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  if(GPU_EXACT_ALL_GPUS)
    # Machine code of one generation runs on its later chips too; PTX serves those still to come.
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90-real 100-real 120)
  elseif(GPU_EXACT_GPU_VISIBLE)
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 75-virtual)  # PTX of the oldest: the driver makes code of any GPU
    message(STATUS "No GPU is visible: compiling a first look, slower than it could be on a GPU; "
                   "-DGPU_EXACT_ALL_GPUS=ON compiles for all GPUs, which takes several times as long")
  endif()
endif()

enable_language(CUDA)
if(CMAKE_CUDA_ARCHITECTURES STREQUAL native AND NOT CMAKE_CUDA_ARCHITECTURES_NATIVE MATCHES "^[0-9]")
  message(FATAL_ERROR
    "CMAKE_CUDA_ARCHITECTURES=native compiles for the GPU of this machine, and none is visible here. "
    "Name its compute capability without the dot, such as CMAKE_CUDA_ARCHITECTURES=90 for an H100 or "
    "H200 (80 for an A100, 89 for an L4 or RTX 40), or leave CMAKE_CUDA_ARCHITECTURES out and set "
    "GPU_EXACT_ALL_GPUS=ON, which compiles for all of them.")
endif()
message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures: ${CMAKE_CUDA_ARCHITECTURES}")
