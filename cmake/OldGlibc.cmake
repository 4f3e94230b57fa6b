# Sets multicast_old_glibc to the objcopy options that make an object use the first version of each
# function that has gained a newer version since glibc 2.17. The list is empty for other libcs and
# processors.

include(CheckCSourceCompiles)

# A function's first version has the number of the first glibc release that supported the processor.
# Exceptions are newer functions on x86, and pthread_create on i386, whose first version has a
# different pthread_attr_t. On RISC-V, the first glibc release is newer than 2.17.
set(multicast_old_glibc)
foreach(processor __x86_64__=GLIBC_2.2.5 __aarch64__=GLIBC_2.17 __riscv=GLIBC_2.27
    __i386__=GLIBC_2.0 __arm__=GLIBC_2.4)
  string(REPLACE = ";" processor ${processor})
  list(POP_FRONT processor name first)
  set(CMAKE_REQUIRED_QUIET ON)
  check_c_source_compiles("#include <limits.h>
    #if !defined __GLIBC__ || !defined ${name} || (defined __x86_64__ && !defined __LP64__)
    #error
    #endif
    int main(void) { return 0; }" multicast_is_glibc_of${name})
  unset(CMAKE_REQUIRED_QUIET)
  if(NOT multicast_is_glibc_of${name})
    continue()
  endif()
  foreach(function attr_setstacksize condattr_setclock create key_create key_delete
      mutex_trylock setspecific sigmask)
    set(version ${first})
    if(name MATCHES "^__(x86_64|i386)__$" AND function STREQUAL condattr_setclock)
      set(version GLIBC_2.3.3)
    elseif(name STREQUAL __i386__ AND function MATCHES "^(attr_setstacksize|create)$")
      set(version GLIBC_2.1)
    endif()
    list(APPEND multicast_old_glibc
      --redefine-sym pthread_${function}=pthread_${function}@${version})
  endforeach()
endforeach()
