# Flags that hold for every target.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()

# Not -O0: there std::exception_ptr's functions, which are inline, take the place of the library's that
# older_libstdcxx.cc calls, and call themselves.
set(CMAKE_CXX_FLAGS_DEBUG "-g -Og")

find_program(GPU_EXACT_CCACHE ccache)
mark_as_advanced(GPU_EXACT_CCACHE)
foreach(language IN ITEMS CXX CUDA)
  if(GPU_EXACT_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${GPU_EXACT_CCACHE}")
  endif()
  set(CMAKE_${language}_STANDARD 17)
  set(CMAKE_${language}_STANDARD_REQUIRED ON)
  set(CMAKE_${language}_EXTENSIONS OFF)
  set(CMAKE_${language}_VISIBILITY_PRESET hidden)
endforeach()
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(GPU_EXACT_LINE_INFO "Name the source line of a kernel's instructions, for profilers" ON)
option(GPU_EXACT_CHECKS "Check in kernels, and before uploads, what these rely on: slower" OFF)

add_library(gpu_exact_options INTERFACE)
set(checks $<OR:$<CONFIG:Debug>,$<BOOL:${GPU_EXACT_CHECKS}>>)
target_compile_definitions(gpu_exact_options INTERFACE $<${checks}:GPU_EXACT_CHECKS>)
target_compile_options(gpu_exact_options INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,${checks}>:-UNDEBUG>)  # assert() then is what kernels call
# Contracted multiply-adds round once where XGBoost's CPU code rounds twice: trees would differ.
target_compile_options(gpu_exact_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -ffp-contract=off
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --default-stream=per-thread --expt-relaxed-constexpr
    -Xcompiler=-Wall,-ffp-contract=off>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${GPU_EXACT_LINE_INFO}>>:-lineinfo>)
