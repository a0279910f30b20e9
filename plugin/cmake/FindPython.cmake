# GPU_EXACT_PYTHON: a Python interpreter that XGBoost's wheels accept. The user's choice wins; else
# the first that fits and has pip, which downloads for it, from PATH, pyenv, conda and uv: one that the
# newest wheels accept, or one for older wheels where there is none.
set(GPU_EXACT_PYTHON_MINIMUM 3.10)
set(GPU_EXACT_PYTHON_OF_NEWEST 3.12)

function(gpu_exact_python_fits interpreter minimum out_fits out_reason)
  set(${out_fits} FALSE PARENT_SCOPE)
  execute_process(
    COMMAND "${interpreter}" -c "import sys; print('%d.%d' % sys.version_info[:2])"
    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT version MATCHES "^3\\.[0-9]+$")
    set(${out_reason} "does not run" PARENT_SCOPE)
  elseif(version VERSION_LESS minimum)
    set(${out_reason} "is Python ${version}" PARENT_SCOPE)
  else()
    set(${out_fits} TRUE PARENT_SCOPE)
  endif()
endfunction()

function(gpu_exact_find_python out_python)
  foreach(chosen IN ITEMS GPU_EXACT_PYTHON Python3_EXECUTABLE)
    if(${chosen})
      gpu_exact_python_fits("${${chosen}}" ${GPU_EXACT_PYTHON_MINIMUM} fits reason)
      if(NOT fits)
        message(FATAL_ERROR "${chosen}=${${chosen}} ${reason}; Python >= "
                            "${GPU_EXACT_PYTHON_MINIMUM} is needed.")
      endif()
      set(${out_python} "${${chosen}}" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  file(GLOB candidates
    "$ENV{CONDA_PREFIX}/bin/python3"
    "$ENV{PYENV_ROOT}/versions/3.*/bin/python3" "$ENV{HOME}/.pyenv/versions/3.*/bin/python3"
    "$ENV{HOME}/*conda3/bin/python3" "$ENV{HOME}/miniforge3/bin/python3" "/opt/conda/bin/python3"
    "$ENV{UV_PYTHON_INSTALL_DIR}/*/bin/python3" "$ENV{HOME}/.local/share/uv/python/*/bin/python3")
  list(PREPEND candidates python3 python3.13 python3.14 python3.12 python3.11 python3.10)
  foreach(minimum IN ITEMS ${GPU_EXACT_PYTHON_OF_NEWEST} ${GPU_EXACT_PYTHON_MINIMUM})
    foreach(candidate IN LISTS candidates)
      gpu_exact_python_fits("${candidate}" ${minimum} fits reason)
      if(NOT fits)
        continue()
      endif()
      execute_process(COMMAND "${candidate}" -c "import pip, sys; print(sys.executable)"
                      OUTPUT_VARIABLE executable OUTPUT_STRIP_TRAILING_WHITESPACE
                      ERROR_QUIET RESULT_VARIABLE failed)
      if(NOT failed)
        set(${out_python} "${executable}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  message(FATAL_ERROR
    "No Python >= ${GPU_EXACT_PYTHON_MINIMUM}, which XGBoost needs, with pip was found on PATH or "
    "under pyenv, conda and uv. Install one, or name it with "
    "-DGPU_EXACT_PYTHON=<interpreter>.")
endfunction()
