#include "shims.h"

#ifdef SHIMS_LINUX

// The core may have been compiled with glibc's headers although this program uses another libc. The
// types of that libc must then fit into the stack space that shims_start_thread() reserves for
// glibc's types.
#ifdef __aarch64__
#define GLIBC_ATTR_SIZE 64
#elif defined __LP64__
#define GLIBC_ATTR_SIZE 56
#else
#define GLIBC_ATTR_SIZE 36
#endif
_Static_assert(sizeof(pthread_attr_t) <= GLIBC_ATTR_SIZE && sizeof(sigset_t) <= 128,
               "the types of this libc do not fit into the core's");

bool shims_membarrier_register(void) {
#ifdef MULTICAST_WITHOUT_MEMBARRIER
  return false;
#else
  const long offered = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return offered >= 0 && (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

#endif
