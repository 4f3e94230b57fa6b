# Installs the libraries, the headers, the CMake package, the pkg-config file and multicast-trace. No
# file contains the installation prefix, so an installation can be moved.

include(GNUInstallDirs)
include(cmake/InstallPackage.cmake)

set(multicast_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/multicast)

foreach(library ${multicast_shared} multicast_static)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

# Records which folders do not exist yet, for the target `uninstall`. This must come before all
# other installation rules.
install(CODE "
  foreach(folder \"${CMAKE_INSTALL_BINDIR}\" \"${CMAKE_INSTALL_LIBDIR}/multicast\"
      \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\" \"${multicast_config_dir}\"
      \"${CMAKE_INSTALL_DATADIR}/multicast\"
      \"${CMAKE_INSTALL_INCLUDEDIR}/multicast/detail\" \"${CMAKE_INSTALL_INCLUDEDIR}/multicast/signal\"
      \"${CMAKE_INSTALL_INCLUDEDIR}/CMulticast\" \"${CMAKE_INSTALL_MANDIR}/man3\")
    if(NOT IS_ABSOLUTE \"\${folder}\")
      string(PREPEND folder \"\${CMAKE_INSTALL_PREFIX}/\")
    endif()
    string(PREPEND folder \"\$ENV{DESTDIR}\")
    while(NOT EXISTS \"\${folder}\")
      file(APPEND \"${PROJECT_BINARY_DIR}/install_folders.txt\" \"\${folder}\\n\")
      get_filename_component(folder \"\${folder}\" DIRECTORY)
    endwhile()
  endforeach()
" ALL_COMPONENTS)
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall
    COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake
    VERBATIM)
endif()

# There is a separate export for each kind of library, because an installation may leave one out, as
# distributions do.
install(TARGETS ${multicast_shared} EXPORT multicastSharedTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT multicast_runtime NAMELINK_COMPONENT multicast_development)
install(TARGETS multicast_static EXPORT multicastStaticTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT multicast_development)
install(EXPORT multicastSharedTargets NAMESPACE multicast::
  DESTINATION ${multicast_config_dir} COMPONENT multicast_development)
install(EXPORT multicastStaticTargets NAMESPACE multicast::
  DESTINATION ${multicast_config_dir} COMPONENT multicast_development)
if(TARGET multicast-trace)
  install(TARGETS multicast-trace
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT multicast_development)
  install(TARGETS multicast-trace-object
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/multicast COMPONENT multicast_development)
endif()

multicast_install_package(${CMAKE_INSTALL_INCLUDEDIR} ${multicast_config_dir})
# Suppressions for race detectors: see examples-c/DUMP.md.
install(FILES cmake/tsan.supp cmake/valgrind.supp
  DESTINATION ${CMAKE_INSTALL_DATADIR}/multicast COMPONENT multicast_development)
# In a directory with the module's name, Swift and clang find the module even if other modules are
# installed next to it.
install(DIRECTORY include/CMulticast
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT multicast_development)

# The pkg-config files use paths relative to their own location. Directories given as absolute paths
# stay absolute, and so does the prefix /usr, so that pkg-config recognizes the compiler's own
# directories and leaves them out. The option -I/usr/include would break C++ compilers.
foreach(directory LIBDIR INCLUDEDIR)
  set(multicast_pc_${directory} ${CMAKE_INSTALL_${directory}})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${directory}}")
    string(PREPEND multicast_pc_${directory} "\${prefix}/")
  endif()
endforeach()

# multicast_install_pc(NAME COMPONENT): installs the file generated from cmake/NAME.pc.in.
function(multicast_install_pc name component)
  set(multicast_pc_prefix /usr)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/usr/${name}.pc @ONLY)
  set(multicast_pc_prefix ${CMAKE_INSTALL_PREFIX})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH multicast_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    string(REGEX REPLACE "/$" "" multicast_pc_prefix "\${pcfiledir}/${multicast_pc_prefix}")
  endif()
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc @ONLY)
  install(CODE "
    set(multicast_pc \"${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc\")
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
      set(multicast_pc \"${PROJECT_BINARY_DIR}/pkgconfig/usr/${name}.pc\")
    endif()
    set(multicast_pc_dir \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
    if(NOT IS_ABSOLUTE \"\${multicast_pc_dir}\")
      string(PREPEND multicast_pc_dir \"\${CMAKE_INSTALL_PREFIX}/\")
    endif()
    file(INSTALL \"\${multicast_pc}\" DESTINATION \"\${multicast_pc_dir}\")
  " COMPONENT ${component})
endfunction()
multicast_install_pc(multicast multicast_development)

# Each transport is a separate package.
function(multicast_install_transport name Name)
  target_include_directories(multicast_${name} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS multicast_${name} EXPORT multicast${Name}Targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT multicast_${name}_runtime NAMELINK_COMPONENT multicast_${name}_development)
  install(EXPORT multicast${Name}Targets NAMESPACE multicast::
    DESTINATION ${multicast_config_dir} COMPONENT multicast_${name}_development)
  install(FILES include/multicast_${name}.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT multicast_${name}_development)
  multicast_install_pc(multicast-${name} multicast_${name}_development)
endfunction()
if(MULTICAST_LOCAL)
  multicast_install_transport(local Local)
endif()
if(MULTICAST_MQTT)
  multicast_install_transport(mqtt Mqtt)
endif()
if(MULTICAST_NATS)
  multicast_install_transport(nats Nats)
endif()
