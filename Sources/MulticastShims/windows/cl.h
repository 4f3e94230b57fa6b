// Replaces the extensions of C that shims.h uses and that Microsoft's cl lacks. No version of cl
// has compiled this file so far.

#ifndef MULTICAST_CL_H
#define MULTICAST_CL_H

#define SHIMS_CL 1

#include <intrin.h>

// The attributes matter only for speed. Without them, variables may share cache lines.
#define __attribute__(ignored)
#define __thread __declspec(thread)
#define __builtin_ia32_pause _mm_pause

static inline void *shims_keep(void *address) { return address; }
static inline void shims_compiler_fence(void) { _ReadWriteBarrier(); }
static inline void shims_full_fence(void) {
  volatile long word = 0;
  _InterlockedOr(&word, 0);
}

#endif
