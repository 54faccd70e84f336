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
  target_include_directories(masque_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>)
  file(STRINGS ${PROJECT_SOURCE_DIR}/lib/LAYERS rule REGEX "^${name}:")
  string(REGEX REPLACE "^${name}: *" "" below "${rule}")
  string(REPLACE " " ";" below "${below}")
  list(TRANSFORM below PREPEND masque::)
  target_link_libraries(masque_${name} PUBLIC ${below} PRIVATE masque_options ${ARG_LIBRARIES})
  if(registered)
    # An archive drops objects that nobody names; object files are always linked.
    add_library(masque_${name}_registry OBJECT ${registered})
    target_include_directories(masque_${name}_registry PRIVATE ${PROJECT_SOURCE_DIR}/lib)
    target_link_libraries(masque_${name}_registry PRIVATE masque_options fmt::fmt)
    target_sources(masque_${name} INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:masque_${name}_registry>>)
  endif()
endfunction()

# masque_add_tool(NAME SOURCES file… LAYERS layer…)
function(masque_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LAYERS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${name}/)
  list(TRANSFORM ARG_LAYERS PREPEND masque::)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE masque_options fmt::fmt masque::cli ${ARG_LAYERS})
  set_property(TARGET masque_cli APPEND PROPERTY MASQUE_TOOLS ${name})
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
  doctest_discover_tests(${layer}_test TEST_PREFIX "${layer}/" PROPERTIES TIMEOUT 120)
endfunction()
