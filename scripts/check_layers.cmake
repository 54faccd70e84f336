# Checks the order of the layers and a few rules on sources; reads lib/LAYERS and every #include.
#   cmake [-DROOT=folder] [-DMAX_LINES=400] -P scripts/check_layers.cmake
# Prints one line per broken rule and fails if there is any.
cmake_minimum_required(VERSION 3.25)

if(NOT DEFINED ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()
if(NOT DEFINED MAX_LINES)
  set(MAX_LINES 400)
endif()

# The only files that may catch: the end of every tool, the rethrow after the threads, and the command
# that examines several checkpoints and goes on after one that cannot be read.
set(may_catch lib/cli/run_tool.cpp lib/base/ordered_work.hpp lib/base/parallel.cpp apps/ckpt/check.cpp)
# The only files that may include headers that take seconds to compile.
set(may_include_heavy lib/cli/command.cpp lib/cli/run_tool.cpp lib/base/json.cpp)
# The only file that knows MPI: others know train::Ranks.
set(may_include_mpi apps/lm-train/launch.cpp)
# The only layers that know how an option is spelled.
set(may_spell_options cli commands)
# Longer files, each with its reason above it.
set(may_be_long)

set(errors "")
macro(broken)
  string(APPEND errors "  " ${ARGN} "\n")
endmacro()

# --- lib/LAYERS: every layer and the layers that it may include --------------------------------
file(STRINGS ${ROOT}/lib/LAYERS lines REGEX "^[a-z]")
set(layers "")
foreach(line IN LISTS lines)
  string(REGEX MATCHALL "[a-z_]+" words "${line}")
  list(POP_FRONT words layer)
  list(APPEND layers ${layer})
  set(below_${layer} ${words})
endforeach()
foreach(layer IN LISTS layers)
  foreach(lower IN LISTS below_${layer})
    if(NOT lower IN_LIST layers)
      broken("lib/LAYERS: ${layer} names an unknown layer '${lower}'")
    endif()
  endforeach()
endforeach()

# Layers whose lower layers are all placed are placed; what never is stands on a cycle.
set(unplaced ${layers})
set(progress TRUE)
while(progress)
  set(progress FALSE)
  foreach(layer IN LISTS unplaced)
    set(waits_for "")
    foreach(lower IN LISTS below_${layer})
      if(lower IN_LIST unplaced)
        list(APPEND waits_for ${lower})
      endif()
    endforeach()
    if(NOT waits_for)
      list(REMOVE_ITEM unplaced ${layer})
      set(progress TRUE)
    endif()
  endforeach()
endwhile()
if(unplaced)
  list(JOIN unplaced ", " names)
  broken("lib/LAYERS: a cycle through ${names}")
endif()

# --- sources -------------------------------------------------------------------------------------
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/lib/*.[hc]pp ${ROOT}/apps/*.[hc]pp)
if(NOT files)
  broken("no sources under lib/ and apps/")
endif()
foreach(file IN LISTS files)
  file(READ ${ROOT}/${file} text)
  string(REPLACE ";" " " text "\n${text}")  # one list element, and a line end before every line
  string(REGEX MATCH "^lib/([^/]+)/" in_layer "${file}")
  set(layer "${CMAKE_MATCH_1}")
  if(in_layer AND NOT layer IN_LIST layers)
    broken("${file}: the layer '${layer}' is not in lib/LAYERS")
  endif()

  string(REGEX MATCHALL "\n *# *include *\"[^\"\n]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^.*\"([^\"]+)\"$" "\\1" header "${include}")
    string(REGEX REPLACE "/.*$" "" lower "${header}")
    if(NOT in_layer)
      continue()  # a tool may include everything
    elseif(NOT lower IN_LIST layers OR lower STREQUAL header)
      broken("${file}: includes \"${header}\", expected \"LAYER/FILE\"")
    elseif(NOT lower STREQUAL layer AND NOT lower IN_LIST below_${layer})
      broken("${file}: includes \"${header}\", but ${layer} may not use ${lower}")
    endif()
  endforeach()

  if("${text}" MATCHES "\n *# *include *[<\"]((CLI|nlohmann)/[^>\"\n]*)")
    if(NOT file IN_LIST may_include_heavy)
      broken("${file}: includes the heavy <${CMAKE_MATCH_1}>")
    endif()
  endif()
  if("${text}" MATCHES "\n *# *include *[<\"](mpi[.]h)" AND NOT file IN_LIST may_include_mpi)
    broken("${file}: includes <${CMAKE_MATCH_1}>")
  endif()
  if(NOT file MATCHES "^lib/kernel/onednn/" AND
     "${text}" MATCHES "[^a-z_](dnnl(_[a-z_]+|[.]hpp|[.]h|::)|DNNL_[A-Z_]+)")
    broken("${file}: names '${CMAKE_MATCH_1}' of oneDNN outside lib/kernel/onednn")
  endif()
  if("${text}" MATCHES "[^a-z_]catch *\\(" AND NOT file IN_LIST may_catch)
    broken("${file}: catches an exception")
  endif()
  if(in_layer AND NOT layer STREQUAL "cli")
    if("${text}" MATCHES "std::(cout|cerr|clog)|[^a-z_]((f|v|vf)?printf|f?puts|putchar) *\\(|fmt::print")
      broken("${file}: prints ('${CMAKE_MATCH_0}')")
    endif()
  endif()

  # Options are spelled by cli and by the tools; below, field() names what they set. Searched: strings and comments.
  if(in_layer AND NOT layer IN_LIST may_spell_options)
    string(REGEX REPLACE "[][]" "." tokens "${text}")  # brackets would join list elements
    string(REGEX MATCHALL "\"([^\"\\\n]|\\\\[^\n])*\"|//[^\n]*|'([^'\\\n]|\\\\[^\n])'" tokens "${tokens}")
    foreach(token IN LISTS tokens)
      if("${token}" MATCHES "[^-A-Za-z0-9_)](--[a-z{][a-z-]*)")
        broken("${file}: spells the option '${CMAKE_MATCH_1}', expected field()")
      endif()
    endforeach()
  endif()

  string(REGEX MATCHALL "\n" newlines "${text}")
  list(LENGTH newlines count)
  math(EXPR count "${count} - 1")
  if(count GREATER MAX_LINES AND NOT file IN_LIST may_be_long)
    broken("${file}: has ${count} lines, expected at most ${MAX_LINES}")
  endif()
endforeach()

if(errors)
  message(FATAL_ERROR "broken rules of the layers:\n${errors}")
endif()
list(LENGTH files count)
message(STATUS "${count} files keep the rules of the layers")
