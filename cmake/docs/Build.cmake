# Generates the reference of a C header, or of the C++ headers. The target `docs` runs this script:
#
#   cmake -DHEADER=multicast.h -DVERSION=1.1.0 -DOUTPUT=build/docs -P Build.cmake
#
# OUTPUT/html contains the HTML. For C headers, OUTPUT/man contains the files for share/man. The
# script fails if Doxygen warns. The reference of multicast.h contains the examples, and links to
# ../cpp/html and to local, mqtt and nats.

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

# Runs a command and shows its output. Successful commands print nothing.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "The reference was not made: see above.")
  endif()
endfunction()

set(DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
file(REMOVE_RECURSE ${OUTPUT}/html ${OUTPUT}/xml ${OUTPUT}/man)
file(MAKE_DIRECTORY ${OUTPUT})
get_filename_component(name ${HEADER} NAME)
get_filename_component(EXTENSION ${HEADER} EXT)
get_filename_component(EXAMPLES ${DIRECTORY}/../../examples-c ABSOLUTE)
set(INPUT "\"${HEADER}\"")
if(EXTENSION STREQUAL .hpp)
  get_filename_component(folder ${HEADER} DIRECTORY)
  string(APPEND INPUT " \"${folder}/multicast\" \"${folder}/multicast/signal\"")
elseif(name STREQUAL multicast.h)
  # Adds a page for each example, with the first sentence of the example's first comment.
  file(GLOB examples ${EXAMPLES}/*.c)
  set(pages)
  foreach(example IN LISTS examples)
    get_filename_component(example_name ${example} NAME)
    file(READ ${example} text LIMIT 1000)
    if(NOT text MATCHES "[0-9a-z_]+: ([^.]+[.])")
      message(FATAL_ERROR "${example} does not say what it is.")
    endif()
    string(REPLACE "\n *" "" text "${CMAKE_MATCH_1}")
    string(SUBSTRING "${text}" 0 1 first)
    string(SUBSTRING "${text}" 1 -1 rest)
    string(TOUPPER "${first}" first)
    string(APPEND pages "/** @example ${example_name}\n * ${first}${rest} */\n")
  endforeach()
  file(WRITE ${OUTPUT}/examples.dox "${pages}")
  string(APPEND INPUT " \"${OUTPUT}/examples.dox\"")
endif()
configure_file(${DIRECTORY}/Doxyfile.in ${OUTPUT}/Doxyfile @ONLY)
run(${DOXYGEN} ${OUTPUT}/Doxyfile)
if(EXTENSION STREQUAL .hpp)
  return()
endif()
run(${PYTHON} ${DIRECTORY}/man.py ${OUTPUT}/xml ${OUTPUT}/man/man3 --version ${VERSION}
  --header ${name})
