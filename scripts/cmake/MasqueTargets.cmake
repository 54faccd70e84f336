# The functions that carry the build: options, a layer, a tool, a test.

add_library(masque_options INTERFACE)
target_compile_options(masque_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  $<$<BOOL:${MASQUE_WERROR}>:-Werror>
  # The same bits everywhere: no fused multiply-add behind our back, no -ffast-math.
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -fstack-protector-strong
  # g++ 12 warns about std::string + char without cause (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_compile_definitions(masque_options INTERFACE _GLIBCXX_ASSERTIONS)
target_link_options(masque_options INTERFACE -Wl,-z,relro,-z,now)

# masque_add_layer(NAME SOURCES file… [REGISTRIES folder…] [LIBRARIES target…])
# A static library whose layer dependencies are those of lib/LAYERS. Files in a registry folder
# register themselves; they are the only ones found by a glob.
function(masque_add_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;REGISTRIES;LIBRARIES" ${ARGN})
  set(sources ${ARG_SOURCES})
  foreach(folder IN LISTS ARG_REGISTRIES)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${folder}/*.cpp)
    list(APPEND registered ${found})
  endforeach()
  list(TRANSFORM sources PREPEND ${name}/)
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
  set(installed masque_${name})
  if(registered)
    # An archive drops objects that nobody names; object files are always linked.
    add_library(masque_${name}_registry OBJECT ${registered})
    target_include_directories(masque_${name}_registry PRIVATE ${PROJECT_SOURCE_DIR}/lib)
    target_link_libraries(masque_${name}_registry PRIVATE $<BUILD_INTERFACE:masque_options> fmt::fmt)
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

# masque_add_tool(NAME SOURCES file… LAYERS layer… [NO_INSTALL])
# A program, its manual page and its completion scripts, which the program writes. With NO_INSTALL it
# is a helper of the build: without these, never installed, and unknown to the other tools.
function(masque_add_tool name)
  cmake_parse_arguments(ARG "NO_INSTALL" "" "SOURCES;LAYERS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${name}/)
  list(TRANSFORM ARG_LAYERS PREPEND masque::)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE masque_options fmt::fmt masque::cli ${ARG_LAYERS})
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
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  set(data ${CMAKE_INSTALL_DATADIR})
  install(FILES ${bash} DESTINATION ${data}/bash-completion/completions COMPONENT tools)
  install(FILES ${zsh} DESTINATION ${data}/zsh/site-functions COMPONENT tools)
  install(FILES ${fish} DESTINATION ${data}/fish/vendor_completions.d COMPONENT tools)
endfunction()

# masque_add_test(LAYER SOURCES file…): one doctest program that links its layer and no more. CTest
# starts every test case by itself; one that is renamed so that no case matches fails.
function(masque_add_test layer)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${layer}/)
  add_executable(${layer}_test ${ARG_SOURCES} $<TARGET_OBJECTS:masque_test_support>)
  target_include_directories(${layer}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${layer}_test
    PRIVATE masque_options fmt::fmt doctest::doctest masque::${layer})
  target_compile_definitions(${layer}_test PRIVATE
    MASQUE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" MASQUE_SOURCES="${PROJECT_SOURCE_DIR}/lib")
  doctest_discover_tests(${layer}_test TEST_PREFIX "${layer}/" PROPERTIES TIMEOUT 300)
endfunction()
