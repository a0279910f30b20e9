# Run as a script: cmake -DNM=<nm> -DOBJECTS=<a;b> -DOUTPUT=<imports.inc> -P WriteImports.cmake
# Lists the XGBoost functions that the objects call but do not define, as IMPORT(index, name).
set(undefined "")
set(defined "")
foreach(object IN LISTS OBJECTS)
  foreach(kind IN ITEMS undefined defined)
    execute_process(COMMAND "${NM}" --${kind}-only --format=posix "${object}"
                    OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "_Z[^ \n]*(7xgboost|4dmlc)[^ \n]*" symbols "${lines}")
    list(APPEND ${kind} ${symbols})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES undefined)
list(REMOVE_ITEM undefined ${defined})
list(SORT undefined)

# A stub can stand in for a function, not for an object: _ZTV, _ZTI and the like are tables, and a
# name that demangles to no parameter list is a variable.
find_program(CXXFILT c++filt REQUIRED)
set(imports "")
set(index 0)
foreach(symbol IN LISTS undefined)
  execute_process(COMMAND "${CXXFILT}" ${symbol} OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(symbol MATCHES "^_Z(T[VITS]|G)" OR NOT text MATCHES "\\(")
    string(APPEND data "\n  ${text}")
  endif()
  string(APPEND imports "IMPORT(${index}, ${symbol})\n")
  math(EXPR index "${index} + 1")
endforeach()
if(data)
  message(FATAL_ERROR
    "plugin/ uses data of XGBoost, and only functions can be bound at load. Virtual tables and "
    "type information (of a class that no header defines whole: constructed, dynamic_cast, typeid, "
    "catch) and global variables are data. Do the same through functions:${data}")
endif()
file(WRITE "${OUTPUT}" "${imports}")
