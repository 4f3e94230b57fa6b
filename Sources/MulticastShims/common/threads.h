// The functions that Linux and other POSIX systems share. They are inline on Linux, and compiled
// once on other systems. Include shims.h before this file. On Linux, shims.h already includes it.

#ifndef MULTICAST_THREADS_H
#define MULTICAST_THREADS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// ---- Memory and time -----------------------------------------------------------------------

SHIMS_SYSTEM void *shims_allocate(size_t size, size_t alignment) {
  void *block = NULL;
  if (alignment <= 2 * sizeof(void *)) return malloc(size);
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}
SHIMS_SYSTEM void shims_deallocate(void *block) { free(block); }

SHIMS_SYSTEM uint64_t shims_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

SHIMS_SYSTEM void shims_backoff(void) {
  struct timespec moment = {.tv_sec = 0, .tv_nsec = 50000};
  int error = errno, previous;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous);
  nanosleep(&moment, NULL);
  pthread_setcancelstate(previous, NULL);
  errno = error;
}

// ---- Threads -------------------------------------------------------------------------------

SHIMS_SYSTEM bool shims_start_thread(void *(*body)(void *), void *argument, size_t stack_size) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t blocked, previous;
  static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGTRAP, SIGSYS,
                            SIGABRT, SIGPIPE, SIGPROF,
#ifdef SIGPWR
                            SIGPWR,
#endif
                            SIGXCPU};
#ifdef __APPLE__
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  stack_size = (stack_size + page - 1) / page * page;  // pthread takes only whole pages
#endif
  if (pthread_attr_init(&attributes) != 0) return false;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own / sizeof *own; ++i) sigdelset(&blocked, own[i]);
#ifdef SIGRTMIN
  for (int i = SIGRTMIN; i <= SIGRTMAX; ++i) sigdelset(&blocked, i);
#endif
  pthread_sigmask(SIG_BLOCK, &blocked, &previous);
  bool ok = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
            (stack_size == 0 || pthread_attr_setstacksize(&attributes, stack_size) == 0) &&
            pthread_create(&thread, &attributes, body, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  return ok;
}

extern SHIMS_HIDDEN pthread_key_t shims_exit_key;

SHIMS_SYSTEM bool shims_exit_key_init(void) {
  return pthread_key_create(&shims_exit_key, shims_thread_did_end) == 0;
}
SHIMS_SYSTEM bool shims_watch_exit(void *record) {
  return pthread_setspecific(shims_exit_key, record) == 0;
}

#endif
