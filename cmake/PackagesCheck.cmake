# cpack reads this file once for each kind of package that it makes.

if(CPACK_GENERATOR STREQUAL "DEB")
  # Installs the files with the prefix /usr, instead of moving them there afterwards.
  set(CPACK_SET_DESTDIR ON)
  # If the files were stripped here, the debug symbol packages would be empty.
  set(CPACK_STRIP_FILES OFF)
  if(NOT CPACK_PACKAGE_CONTACT MATCHES "^[^<>]+ <[^<>@ ]+@[^<>@ ]+>$")
    message(FATAL_ERROR
      "MULTICAST_MAINTAINER is '${CPACK_PACKAGE_CONTACT}': it has to be 'Name <address>'.")
  endif()
  # If this summary were set, all descriptions would begin with it, although they have their own
  # first lines.
  unset(CPACK_PACKAGE_DESCRIPTION_SUMMARY)
  if(NOT CPACK_MULTICAST_INSTALL_PREFIX STREQUAL "/usr")
    message(FATAL_ERROR
      "A Debian package is installed in /usr, and this build is for '${CPACK_MULTICAST_INSTALL_PREFIX}', "
      "where the library directory is another: configure it with -DCMAKE_INSTALL_PREFIX=/usr.")
  endif()
  if(NOT CPACK_MULTICAST_GZIP)
    message(FATAL_ERROR "A Debian package needs gzip: install it and configure again.")
  endif()
  # Without dpkg-shlibdeps, cpack would make packages without dependencies.
  foreach(program file dpkg-shlibdeps)
    unset(found)
    find_program(found ${program} NO_CACHE)
    if(NOT found)
      message(FATAL_ERROR "A Debian package needs ${program}: install file and dpkg-dev.")
    endif()
  endforeach()
endif()
