# Defines Oniguruma::onig. Debian's libonig-dev brings no CMake package; ours installs this file.
find_library(Oniguruma_LIBRARY onig)
find_path(Oniguruma_INCLUDE_DIR oniguruma.h)
mark_as_advanced(Oniguruma_LIBRARY Oniguruma_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Oniguruma REQUIRED_VARS Oniguruma_LIBRARY Oniguruma_INCLUDE_DIR)
if(Oniguruma_FOUND AND NOT TARGET Oniguruma::onig)
  add_library(Oniguruma::onig UNKNOWN IMPORTED)
  set_target_properties(Oniguruma::onig PROPERTIES
    IMPORTED_LOCATION ${Oniguruma_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Oniguruma_INCLUDE_DIR})
endif()
