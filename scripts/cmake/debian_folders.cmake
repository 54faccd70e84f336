# Read by cpack between installing and packing: zsh of Debian has packages' functions in another folder.
file(GLOB_RECURSE files ${CPACK_TEMPORARY_DIRECTORY}/_*)
foreach(file IN LISTS files)
  if(file MATCHES "^(.*/zsh)/site-functions/([^/]*)$")
    file(MAKE_DIRECTORY ${CMAKE_MATCH_1}/vendor-completions)
    file(RENAME ${file} ${CMAKE_MATCH_1}/vendor-completions/${CMAKE_MATCH_2})
    list(APPEND emptied ${CMAKE_MATCH_1}/site-functions)
  endif()
endforeach()
if(emptied)
  file(REMOVE_RECURSE ${emptied})
endif()
# What Debian's policy asks of a package: packed manual pages, a changelog, and the licence by its name.
file(GLOB pages ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man1/*.1)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../../lib/base/version.hpp date REGEX kVersionDate)
string(REGEX MATCH "[0-9]+-[0-9]+-[0-9]+" date "${date}")
execute_process(COMMAND date -u -R -d ${date} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(GLOB copyrights ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/copyright)
foreach(copyright IN LISTS copyrights)
  cmake_path(GET copyright PARENT_PATH folder)
  file(WRITE ${copyright} "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: masque

Files: *
Copyright: 2026 the authors of masque
License: Apache-2.0
 On Debian systems the licence is /usr/share/common-licenses/Apache-2.0.
")
  file(WRITE ${folder}/changelog "masque (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}. CHANGELOG.md in the source has the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  list(APPEND pages ${folder}/changelog)
endforeach()
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
