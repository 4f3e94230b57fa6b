# Makes the reference. Run by the target docs, as a script:
#
#   cmake -DHEADER=multicast.h -DVERSION=1.1.0 -DOUTPUT=build/docs -P Build.cmake
#
# OUTPUT/html is the HTML, OUTPUT/man what belongs into share/man. Fails where Doxygen warns.

cmake_minimum_required(VERSION 3.22)

foreach(tool DOXYGEN:doxygen AWK:awk PYTHON:python3)
  string(REPLACE ":" ";" tool ${tool})
  list(GET tool 0 variable)
  list(GET tool 1 name)
  find_program(${variable} ${name})
  if(NOT ${variable})
    set(package ${name})
    if(name STREQUAL awk)
      set(package mawk)
    endif()
    message(FATAL_ERROR
      "${name} was not found; the reference cannot be made without it. "
      "Install it, on Debian with: sudo apt-get install ${package}")
  endif()
endforeach()

# Runs a command; what it prints is shown, and is nothing where all is well.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "The reference was not made: see above.")
  endif()
endfunction()

set(DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
file(REMOVE_RECURSE ${OUTPUT}/html ${OUTPUT}/xml ${OUTPUT}/man)
file(MAKE_DIRECTORY ${OUTPUT})
configure_file(${DIRECTORY}/Doxyfile.in ${OUTPUT}/Doxyfile @ONLY)
run(${DOXYGEN} ${OUTPUT}/Doxyfile)
get_filename_component(name ${HEADER} NAME)
run(${PYTHON} ${DIRECTORY}/man.py ${OUTPUT}/xml ${OUTPUT}/man/man3 --version ${VERSION}
  --header ${name})
