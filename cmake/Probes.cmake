# multicast_has_probes: whether the library has USDT probes. They need a header at build time, and
# nothing at run time.

set(multicast_has_probes OFF)
if(NOT MULTICAST_PROBES)
  message(STATUS "USDT probes: off, as MULTICAST_PROBES says")
  return()
endif()
# mold 1.10 aborts when it combines objects that contain the probes' weak symbol into one object.
if(NOT MULTICAST_GNU_LD AND CMAKE_LINKER MATCHES "mold")
  message(STATUS "USDT probes: off, as mold makes the static library; MULTICAST_GNU_LD=ON has them")
  return()
endif()
include(CheckCSourceCompiles)
if(NOT multicast_has_sdt)
  unset(multicast_has_sdt CACHE)  # the header may have been installed since the last check
endif()
set(CMAKE_REQUIRED_QUIET ON)
check_c_source_compiles("#include <sys/sdt.h>
  int main(int count, char **arguments) {
    STAP_PROBE2(multicast, main, count, arguments);
    __asm__ __volatile__(\".reloc ., BFD_RELOC_NONE, _.stapsdt.base\");
    return 0;
  }" multicast_has_sdt)
unset(CMAKE_REQUIRED_QUIET)
if(multicast_has_sdt)
  set(multicast_has_probes ON)
  message(STATUS "USDT probes: on")
else()
  message(STATUS "USDT probes: off, without sys/sdt.h (in Debian's systemtap-sdt-dev)")
endif()
