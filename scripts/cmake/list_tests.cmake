# Writes the CTest commands of a doctest program, one test for each case, named LAYER/FILE: CASE after the file
# FILE_test.cpp that it stands in. Called after the program is linked:
#   cmake -D LAYER=… -D PROGRAM=… -D EXECUTOR=… -D FOLDER=… -D TIMEOUT=… -D LIST=… -P list_tests.cmake
# EXECUTOR starts programs of another processor, or is empty; FOLDER is where tests run; LIST is what is written.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${EXECUTOR} ${PROGRAM} --list-test-cases --reporters=xml
  WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
# In a list a semicolon ends an element and brackets join some: other characters stand for them.
string(ASCII 1 open)
string(ASCII 2 close)
string(ASCII 3 semicolon)
string(REPLACE "[" "${open}" output "${output}")
string(REPLACE "]" "${close}" output "${output}")
string(REPLACE ";" "${semicolon}" output "${output}")
string(REGEX MATCHALL "<TestCase [^\n]*" cases "${output}")
set(commands "")
foreach(case IN LISTS cases)
  if(NOT case MATCHES "name=\"([^\"]*)\".*filename=\"[^\"]*/([^/\"]*)_test\\.cpp\"")
    message(FATAL_ERROR "${PROGRAM}: a case in no file *_test.cpp: ${case}")
  endif()
  set(name "${CMAKE_MATCH_1}")
  set(file "${CMAKE_MATCH_2}")
  string(REPLACE "${open}" "[" name "${name}")
  string(REPLACE "${close}" "]" name "${name}")
  string(REPLACE "&quot${semicolon}" "\"" name "${name}")
  string(REPLACE "&lt${semicolon}" "<" name "${name}")
  string(REPLACE "&gt${semicolon}" ">" name "${name}")
  string(REPLACE "&amp${semicolon}" "&" name "${name}")
  if(name MATCHES "${semicolon}")
    message(FATAL_ERROR "${PROGRAM}: a name with a semicolon: ${name}")
  endif()
  # A comma ends a pattern of doctest.
  string(REPLACE "," "\\," pattern "${name}")
  set(test "${LAYER}/${file}: ${name}")
  string(APPEND commands
    "add_test([==[${test}]==] ${EXECUTOR} [==[${PROGRAM}]==] [==[--source-file=*/${file}_test.cpp]==] [==[--test-case=${pattern}]==])\n"
    "set_tests_properties([==[${test}]==] PROPERTIES TIMEOUT ${TIMEOUT} WORKING_DIRECTORY [==[${FOLDER}]==])\n")
endforeach()
list(LENGTH cases count)
if(NOT output MATCHES "<OverallResultsTestCases unskipped=\"${count}\"")
  message(FATAL_ERROR "${PROGRAM}: ${count} cases read, which are not all")
endif()
file(WRITE ${LIST} "${commands}")
