# Checks the order of the layers and a few rules for sources; reads lib/LAYERS and every #include.
#   cmake [-DROOT=folder] [-DMAX_LINES=800] -P scripts/check_layers.cmake
# Prints one line per broken rule and fails if there is any.
cmake_minimum_required(VERSION 3.25)

if(NOT DEFINED ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()
if(NOT DEFINED MAX_LINES)
  set(MAX_LINES 800)
endif()

# The only files that may catch: the end of every tool, the rethrow after the threads, and the command
# that examines several checkpoints and goes on after one that cannot be read.
set(may_catch lib/cli/run_tool.cpp lib/base/thread/ordered_work.hpp lib/base/thread/parallel.cpp apps/ckpt/check.cpp)
# The only files that may include headers that take seconds to compile.
set(may_include_heavy lib/cli/command.cpp lib/cli/run_tool.cpp lib/base/json/json.cpp)
# The only file that knows MPI: others know train::Ranks.
set(may_include_mpi apps/lm-train/mpi_ranks.hpp)
# The only layers that know how an option is spelled.
set(may_spell_options cli commands)
# Longer files, each with its reason above it.
set(may_be_long)
# Folders of a layer have an order as layers do: none includes, by way of others or not, one that includes it. The
# includes FOLDER>FOLDER that break it, each with its reason above it.
set(may_include_up
  # The model that inference runs is in the layer's own folder, next to the design that the forward pass reads.
  "model>model/forward"
  # Checkpoints are opened and written in all formats, which describe tensors and violations as the layer's own folder does.
  "store>store/gguf" "store>store/safetensors" "store>store/tensorflow" "store>store/zip")

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

# Names whose names in the lists NEXT_NAME (`below_NAME`) are all placed are placed; sets `unplaced` to those that
# stand on a cycle, or wait for one.
function(place next)
  set(unplaced ${ARGN})
  set(progress TRUE)
  while(progress)
    set(progress FALSE)
    foreach(name IN LISTS unplaced)
      set(waits FALSE)
      foreach(other IN LISTS ${next}_${name})
        if(other IN_LIST unplaced)
          set(waits TRUE)
        endif()
      endforeach()
      if(NOT waits)
        list(REMOVE_ITEM unplaced ${name})
        set(progress TRUE)
      endif()
    endforeach()
  endwhile()
  set(unplaced "${unplaced}" PARENT_SCOPE)
endfunction()

place(below ${layers})
if(unplaced)
  list(JOIN unplaced ", " names)
  broken("lib/LAYERS: a cycle through ${names}")
endif()

# --- sources -------------------------------------------------------------------------------------
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/lib/*.[hc]pp ${ROOT}/apps/*.[hc]pp)
set(includes_of_folders "")
if(NOT files)
  broken("no sources under lib/ and apps/")
endif()
foreach(file IN LISTS files)
  file(READ ${ROOT}/${file} text)
  string(REPLACE ";" " " text "\n${text}")  # one list element, and a line end before every line
  string(REGEX MATCH "^lib/([^/]+)/" in_layer "${file}")
  set(layer "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "^lib/(.*)/[^/]*$" "\\1" folder "${file}")
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
    elseif(lower STREQUAL layer)
      string(REGEX REPLACE "/[^/]*$" "" other "${header}")
      if(NOT other STREQUAL folder)
        list(APPEND includes_of_folders "${folder}>${other}")
      endif()
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
      string(REGEX REPLACE "([^-A-Za-z0-9_)])-o([^-A-Za-z0-9_])" "\\1--o\\2" token "${token}")
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

# --- folders of a layer ----------------------------------------------------------------------------
list(REMOVE_DUPLICATES includes_of_folders)
list(SORT includes_of_folders)
foreach(allowed IN LISTS may_include_up)
  string(REGEX REPLACE "^.*>" "" folder "${allowed}")
  if(EXISTS ${ROOT}/lib/${folder} AND NOT allowed IN_LIST includes_of_folders)
    broken("may_include_up: no file includes ${allowed} any more")
  endif()
endforeach()
set(folders "")
foreach(layer IN LISTS layers)
  set(below_${layer} "")  # from here on of the layer's own folder
endforeach()
foreach(pair IN LISTS includes_of_folders)
  string(REPLACE ">" ";" pair_of_names "${pair}")
  list(APPEND folders ${pair_of_names})
  if(NOT pair IN_LIST may_include_up)
    list(GET pair_of_names 0 folder)
    list(GET pair_of_names 1 lower)
    list(APPEND below_${folder} ${lower})
    list(APPEND above_${lower} ${folder})
  endif()
endforeach()
list(REMOVE_DUPLICATES folders)
place(below ${folders})
# What nothing unplaced includes only waits for a cycle: the same walk from above.
place(above ${unplaced})
if(unplaced)
  list(JOIN unplaced ", " names)
  broken("folders that include each other in a circle: ${names}")
endif()

if(errors)
  message(FATAL_ERROR "broken rules of the layers:\n${errors}")
endif()
list(LENGTH files count)
message(STATUS "${count} files keep the rules of the layers")
