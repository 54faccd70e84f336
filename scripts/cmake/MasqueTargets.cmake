# The functions that carry the build: options, a layer, a tool, a test.

add_library(masque_options INTERFACE)
target_compile_options(masque_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  $<$<BOOL:${MASQUE_WERROR}>:-Werror>
  # The same bits everywhere: no fused multiply-add behind our back, no -ffast-math.
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -fstack-protector-strong
  # g++ 12 to 14 find writes beyond std::string and std::vector without cause (GCC bugs 105329, 105651,
  # 107852), more of them the more they inline.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
target_compile_definitions(masque_options INTERFACE _GLIBCXX_ASSERTIONS)
target_link_options(masque_options INTERFACE -Wl,-z,relro,-z,now)

# Headers take more time than our code does. MASQUE_FAST_BUILD parses the standard library and fmt once
# (masque_pch, scripts/cmake/pch.hpp) and compiles small files in batches. Without it each file
# compiles by itself, which shows a file that does not include what it uses (preset "plain").
if(MASQUE_FAST_BUILD)
  foreach(header masque_pch masque_pch_cold)
    add_library(${header} OBJECT ${PROJECT_SOURCE_DIR}/scripts/cmake/pch.cpp)
    target_link_libraries(${header} PRIVATE masque_options fmt::fmt)
    target_precompile_headers(${header} PRIVATE ${PROJECT_SOURCE_DIR}/scripts/cmake/pch.hpp)
  endforeach()
endif()

# Code that computes nothing by itself (command lines, printing) is compiled with -O1, which takes two
# thirds of the time. g++ takes the level from the precompiled header, so each level has its own.
set(masque_cold $<$<CONFIG:Release>:-O1>)
if(MASQUE_FAST_BUILD)
  target_compile_options(masque_pch_cold PRIVATE ${masque_cold})
endif()

# masque_fast_build(TARGET [BATCH n] [NAMES name…] [HEADER_OF target | OWN_HEADER | COLD])
# How MASQUE_FAST_BUILD compiles a target. BATCH is the number of files in a batch; without it each file
# is compiled by itself, still with the precompiled header. NAMES are those that several of its files give
# to something of their own, by custom (kRegistration): in a batch each file's name gets a suffix, so no
# header may declare them. OWN_HEADER is for a target whose flags change what the standard library's
# headers say (-fopenmp). COLD: the target is compiled with ${masque_cold}.
function(masque_fast_build target)
  cmake_parse_arguments(ARG "COLD;OWN_HEADER" "BATCH;HEADER_OF" "NAMES" ${ARGN})
  if(ARG_COLD)
    target_compile_options(${target} PRIVATE ${masque_cold})
  endif()
  if(NOT MASQUE_FAST_BUILD)
    return()
  endif()
  if(ARG_OWN_HEADER)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/scripts/cmake/pch.hpp)
  elseif(ARG_HEADER_OF)
    target_precompile_headers(${target} REUSE_FROM ${ARG_HEADER_OF})
  elseif(ARG_COLD)
    target_precompile_headers(${target} REUSE_FROM masque_pch_cold)
  else()
    target_precompile_headers(${target} REUSE_FROM masque_pch)
  endif()
  if(ARG_BATCH)
    set(code "#define MASQUE_JOIN_(a, b) a##_##b\n#define MASQUE_JOIN(a, b) MASQUE_JOIN_(a, b)\n")
    foreach(name IN LISTS ARG_NAMES)
      string(APPEND code "#define ${name} MASQUE_JOIN(${name}, MASQUE_FILE)\n")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ARG_BATCH}
      UNITY_BUILD_UNIQUE_ID MASQUE_FILE UNITY_BUILD_CODE_BEFORE_INCLUDE "${code}")
  endif()
endfunction()

# masque_add_layer(NAME SOURCES file… [REGISTRIES folder…] [REGISTERED file…] [LIBRARIES target…] [BATCH n] [OWN_HEADER] [COLD])
# A static library whose layer dependencies are those of lib/LAYERS. Files in a registry folder
# that SOURCES does not name register themselves; they are the only ones found by a glob, and always compiled in batches. BATCH,
# OWN_HEADER and COLD: see masque_fast_build.
function(masque_add_layer name)
  cmake_parse_arguments(ARG "COLD;OWN_HEADER" "BATCH" "SOURCES;REGISTRIES;REGISTERED;LIBRARIES" ${ARGN})
  set(sources ${ARG_SOURCES})
  foreach(folder IN LISTS ARG_REGISTRIES)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${folder}/*.cpp)
    foreach(file IN LISTS ARG_SOURCES)
      list(REMOVE_ITEM found ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${file})
    endforeach()
    list(APPEND registered ${found})
  endforeach()
  list(TRANSFORM ARG_REGISTERED PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${name}/)
  list(APPEND registered ${ARG_REGISTERED})
  list(TRANSFORM sources PREPEND ${name}/)
  # Highway includes such a file several times, once for each instruction set: a batch cannot have two.
  foreach(file IN LISTS sources)
    file(STRINGS ${file} targets REGEX "^#define HWY_TARGET_INCLUDE")
    if(targets)
      set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  add_library(masque_${name} STATIC ${sources})
  add_library(masque::${name} ALIAS masque_${name})
  target_include_directories(masque_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/masque>)
  target_compile_features(masque_${name} PUBLIC cxx_std_20)
  file(STRINGS ${PROJECT_SOURCE_DIR}/lib/LAYERS rule REGEX "^${name}:")
  string(REGEX REPLACE "^${name}: *" "" below "${rule}")
  string(REPLACE " " ";" below "${below}")
  list(TRANSFORM below PREPEND masque::)
  target_link_libraries(masque_${name} PUBLIC ${below}
    PRIVATE $<BUILD_INTERFACE:masque_options> ${ARG_LIBRARIES})
  set(fast "")
  if(ARG_BATCH)
    list(APPEND fast BATCH ${ARG_BATCH} NAMES registry)
  endif()
  if(ARG_OWN_HEADER)
    list(APPEND fast OWN_HEADER)
  endif()
  if(ARG_COLD)
    list(APPEND fast COLD)
  endif()
  masque_fast_build(masque_${name} ${fast})
  set(installed masque_${name})
  if(registered)
    # An archive drops objects that nobody names; object files are always linked.
    add_library(masque_${name}_registry OBJECT ${registered})
    target_include_directories(masque_${name}_registry PRIVATE ${PROJECT_SOURCE_DIR}/lib)
    target_link_libraries(masque_${name}_registry PRIVATE $<BUILD_INTERFACE:masque_options> fmt::fmt)
    masque_fast_build(masque_${name}_registry BATCH 20 NAMES kFamily kRegistration kRegistrations make_plan read_design read_objective)
    add_library(masque::${name}_registry ALIAS masque_${name}_registry)
    target_sources(masque_${name} INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:masque::${name}_registry>>)
    set_target_properties(masque_${name}_registry PROPERTIES EXPORT_NAME ${name}_registry)
    list(APPEND installed masque_${name}_registry)
  endif()
  set_target_properties(masque_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${installed} EXPORT masqueTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
    OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/masque COMPONENT dev)
  install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${name} COMPONENT dev
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/masque FILES_MATCHING PATTERN "*.hpp")
endfunction()

# Every tool with its manual page and completions, and nothing else.
add_custom_target(tools)

# masque_add_tool(NAME SOURCES file… LAYERS layer… [NO_INSTALL])
# A program, its manual page and its completion scripts, which the program writes. With NO_INSTALL it
# is a helper of the build: without these, never installed, and unknown to the other tools.
function(masque_add_tool name)
  cmake_parse_arguments(ARG "NO_INSTALL" "" "SOURCES;LAYERS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${name}/)
  list(TRANSFORM ARG_LAYERS PREPEND masque::)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE masque_options fmt::fmt masque::cli ${ARG_LAYERS})
  set(cold COLD)
  if(ARG_NO_INSTALL)
    set(cold "")  # bench times its own loops
  endif()
  masque_fast_build(${name} BATCH 20 NAMES Options ${cold})
  if(ARG_NO_INSTALL)
    return()
  endif()
  set_property(TARGET masque_cli APPEND PROPERTY MASQUE_TOOLS ${name})
  # The folders under build/ are those under a prefix: man finds the pages by PATH.
  set(share ${PROJECT_BINARY_DIR}/share)
  set(page ${share}/man/man1/${name}.1)
  set(bash ${share}/bash-completion/completions/${name})
  set(zsh ${share}/zsh/site-functions/_${name})
  set(fish ${share}/fish/vendor_completions.d/${name}.fish)
  set(script ${PROJECT_SOURCE_DIR}/scripts/cmake/write_output.cmake)
  add_custom_command(OUTPUT ${page} ${bash} ${zsh} ${fish}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${page} -P ${script} -- $<TARGET_FILE:${name}> --man
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${bash} -P ${script} -- $<TARGET_FILE:${name}> --completion bash
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${zsh} -P ${script} -- $<TARGET_FILE:${name}> --completion zsh
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${fish} -P ${script} -- $<TARGET_FILE:${name}> --completion fish
    DEPENDS ${name} ${script} VERBATIM)
  add_custom_target(${name}_texts ALL DEPENDS ${page} ${bash} ${zsh} ${fish})
  add_dependencies(tools ${name}_texts)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  set(data ${CMAKE_INSTALL_DATADIR})
  install(FILES ${bash} DESTINATION ${data}/bash-completion/completions COMPONENT tools)
  install(FILES ${zsh} DESTINATION ${data}/zsh/site-functions COMPONENT tools)
  install(FILES ${fish} DESTINATION ${data}/fish/vendor_completions.d COMPONENT tools)
endfunction()

# What the time limits of tests are multiplied by.
set(masque_patience 1)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  set(masque_patience 5)
endif()

# masque_add_test(LAYER [BATCH n] SOURCES file…): one doctest program that links its layer and no more. CTest
# starts every test case by itself, under the name LAYER/FILE: CASE (list_tests.cmake); one that is renamed so that
# no case matches fails.
function(masque_add_test layer)
  cmake_parse_arguments(ARG "" "BATCH" "SOURCES" ${ARGN})
  if(NOT DEFINED ARG_BATCH)
    set(ARG_BATCH 6)
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${layer}/)
  add_executable(${layer}_test ${ARG_SOURCES} $<TARGET_OBJECTS:masque_test_support>)
  masque_fast_build(${layer}_test HEADER_OF masque_test_support BATCH ${ARG_BATCH})
  target_include_directories(${layer}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${layer}_test
    PRIVATE masque_options fmt::fmt doctest::doctest masque::${layer})
  target_compile_definitions(${layer}_test PRIVATE
    MASQUE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" MASQUE_SOURCES="${PROJECT_SOURCE_DIR}/lib")
  math(EXPR seconds "300 * ${masque_patience}")
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${layer}_tests.cmake)
  add_custom_command(TARGET ${layer}_test POST_BUILD BYPRODUCTS ${list}
    COMMAND ${CMAKE_COMMAND} -D LAYER=${layer} -D PROGRAM=$<TARGET_FILE:${layer}_test>
      "-DEXECUTOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -D FOLDER=${CMAKE_CURRENT_BINARY_DIR} -D TIMEOUT=${seconds}
      -D LIST=${list} -P ${PROJECT_SOURCE_DIR}/scripts/cmake/list_tests.cmake
    VERBATIM)
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${layer}_include.cmake)
  file(WRITE ${include} "if(EXISTS ${list})\n  include(${list})\nelse()\n  add_test(${layer}_not_built not_built)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
