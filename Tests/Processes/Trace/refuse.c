// A library for LD_PRELOAD. The library makes a system call fail in the traced program. The
// environment variable REFUSE selects the call.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuses(const char *what) {
  const char *refused = getenv("REFUSE");
  return refused != NULL && strcmp(refused, what) == 0;
}

// Refuses memory that is shared with other processes.
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  // MULTICAST_TRACE is set only in the traced program, so multicast-trace itself gets memory.
  if ((flags & MAP_SHARED) != 0 && getenv("MULTICAST_TRACE") != NULL && refuses("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  long block = syscall(SYS_mmap, address, size, protection, flags, file, offset);
  return (void *)block; // NOLINT
}

// Refuses system calls. A refused write fails as if the disk were full.
long syscall(long number, ...) {
  static long (*real)(long, ...);
  long argument[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_write && argument[2] > 1000 && refuses("write")) {
    errno = ENOSPC;
    return -1;
  }
  // Acts like a file system that cannot free parts of a file.
  if (number == SYS_fallocate && refuses("fallocate")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
  // Kills the process after it has written a part of the data.
  if (number == SYS_write && argument[2] > 1000 && refuses("rest")) {
    real(number, argument[0], argument[1], 999L, 0L, 0L, 0L);
    kill(getpid(), SIGKILL);
  }
  return real(number, argument[0], argument[1], argument[2], argument[3], argument[4],
              argument[5]);
}

// Refuses all memory while refuses_malloc is set. The program sets this variable while it sets its
// own watch.
int refuses_malloc;
void *malloc(size_t size) {
  static void *(*real)(size_t);
  if (refuses_malloc != 0) return NULL;
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "malloc");
  return real(size);
}
