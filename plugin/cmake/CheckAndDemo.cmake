# `check` and `demo`: build what they need, then run it.

# Make builds one file at a time unless told otherwise, as the README's two commands do not.
execute_process(COMMAND nproc OUTPUT_VARIABLE _jobs OUTPUT_STRIP_TRAILING_WHITESPACE)
function(gpu_exact_add_command_target name)
  cmake_parse_arguments(arg "" "NEEDS" "" ${ARGN})
  if(CMAKE_GENERATOR MATCHES "Makefiles")
    add_custom_target(${name}
      COMMAND "${CMAKE_COMMAND}" -E env --unset=MAKEFLAGS --unset=MFLAGS --unset=MAKELEVEL
              "${CMAKE_COMMAND}" --build "${CMAKE_BINARY_DIR}" --parallel ${_jobs}
              --target ${arg_NEEDS}
      ${arg_UNPARSED_ARGUMENTS}
      WORKING_DIRECTORY "${CMAKE_BINARY_DIR}" USES_TERMINAL VERBATIM)
  else()
    add_custom_target(${name} ${arg_UNPARSED_ARGUMENTS}
      WORKING_DIRECTORY "${CMAKE_BINARY_DIR}" USES_TERMINAL VERBATIM)
    add_dependencies(${name} ${arg_NEEDS})
  endif()
endfunction()

set(_python "${CMAKE_COMMAND}" -E env "PYTHONPATH=${CMAKE_BINARY_DIR}/python"
            "${GPU_EXACT_PYTHON_RUN}")
if(GPU_EXACT_BUILD_TESTS)
  gpu_exact_add_command_target(check NEEDS gpu_exact_tests
    # Says why tests are skipped, where there is no GPU.
    COMMAND ${_python} -m xgboost_gpu_exact
    COMMAND "${CMAKE_CTEST_COMMAND}" --output-on-failure --parallel ${_jobs}
            --no-tests=error --label-exclude "package|releases|bare")
endif()
if(NOT GPU_EXACT_PYTHON_ENV STREQUAL none)
  gpu_exact_add_command_target(demo NEEDS xgboost_gpu_exact
    COMMAND ${_python} -m xgboost_gpu_exact.demo)
endif()
