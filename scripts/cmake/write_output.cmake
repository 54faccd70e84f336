# Runs a command and keeps what it prints in a file.
#   cmake -DOUTPUT=file -P write_output.cmake -- command…
cmake_minimum_required(VERSION 3.25)

set(command "")
set(found_separator FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(found_separator)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(found_separator TRUE)
  endif()
endforeach()

cmake_path(GET OUTPUT PARENT_PATH folder)
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND ${command} OUTPUT_FILE ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
