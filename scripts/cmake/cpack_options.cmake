# Read by cpack before it works.
cmake_policy(VERSION 3.25)
if(CPACK_GENERATOR STREQUAL "DEB")
  foreach(program dpkg-shlibdeps file)
    find_program(found_${program} ${program})
    if(NOT found_${program})
      message(FATAL_ERROR "cpack: no ${program}, which finds the dependencies of a package; "
        "scripts/setup --package installs it (Debian: dpkg-dev, file)")
    endif()
  endforeach()
endif()
