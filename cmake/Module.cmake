# Defines multicast::module, the library as a C++20 module: `import multicast;`
#
# The including file sets multicast_module_dir, the directory of multicast.cppm. If a target links
# the module, CMake compiles the module once, with the flags of the project that uses it. If the
# module cannot be built, multicast_module_reason gives the reason.

unset(multicast_module_reason)
get_property(_multicast_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(CMAKE_VERSION VERSION_LESS 3.28)
  set(multicast_module_reason "modules need CMake 3.28, and this is ${CMAKE_VERSION}")
elseif(NOT CXX IN_LIST _multicast_languages)
  set(multicast_module_reason "modules need CXX as a language of the project")
elseif(NOT CMAKE_GENERATOR MATCHES "Ninja|Visual Studio")
  set(multicast_module_reason "modules need another generator than ${CMAKE_GENERATOR}: Ninja")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16 OR NOT CMAKE_CXX_COMPILER_CLANG_SCAN_DEPS)
    set(multicast_module_reason "modules need clang 16 with clang-scan-deps")
  endif()
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  set(multicast_module_reason
    "modules need gcc 14 or clang 16, and this is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
endif()
unset(_multicast_languages)

if(NOT DEFINED multicast_module_reason AND NOT TARGET multicast::module)
  add_library(multicast_module STATIC EXCLUDE_FROM_ALL)
  add_library(multicast::module ALIAS multicast_module)
  target_sources(multicast_module PUBLIC FILE_SET CXX_MODULES
    BASE_DIRS ${multicast_module_dir} FILES ${multicast_module_dir}/multicast.cppm)
  target_compile_features(multicast_module PUBLIC cxx_std_20)
  target_link_libraries(multicast_module PUBLIC multicast::multicast)
endif()
