#include "system.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

ask ask_thread, ask_specific, ask_key, ask_fork_handlers, ask_eventfd, ask_map, ask_aligned;
gate *thread_may_begin;
int asked_monotonic, asked_other_clock;

void *next_one(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

/* Returns whether the address lies in the library's code. */
static bool is_of_library(const void *address) {
  Dl_info here, library;
  return dladdr(address, &here) != 0 &&
         dladdr((void *)(uintptr_t)&multicast_version, &library) != 0 &&
         here.dli_fbase == library.dli_fbase;
}

static bool refuses(ask *a, const void *caller) {
  if (!is_of_library(caller)) return false;
  ADD(a->count, 1);
  return LOAD(a->is_refused);
}
#define REFUSES(which) refuses(&(which), __builtin_return_address(0))

/* ---- Threads --------------------------------------------------------------------------------- */

typedef struct beginning {
  void *(*body)(void *);
  void *argument;
} beginning;

static void *begin_later(void *argument) {
  beginning b = *(beginning *)argument;
  free(argument);
  gate_wait(thread_may_begin);
  return b.body(b.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  beginning *b;
  *(void **)&real = next_one("pthread_create");
  if (REFUSES(ask_thread)) return EAGAIN;
  if (thread_may_begin == NULL || !is_of_library(__builtin_return_address(0)))
    return real(thread, attributes, body, argument);
  b = malloc(sizeof *b);
  CHECK(b != NULL);
  b->body = body;
  b->argument = argument;
  return real(thread, attributes, begin_later, b);
}

int pthread_setspecific(pthread_key_t key, const void *value) {
  static int (*real)(pthread_key_t, const void *);
  if (real == NULL) *(void **)&real = next_one("pthread_setspecific");
  return REFUSES(ask_specific) ? ENOMEM : real(key, value);
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  int (*real)(pthread_key_t *, void (*)(void *));
  *(void **)&real = next_one("pthread_key_create");
  return REFUSES(ask_key) ? EAGAIN : real(key, destructor);
}

/* The library registers its fork handlers while it is being loaded, before a test can set
 * `ask_fork_handlers`. */
static bool has_begun;
__attribute__((constructor)) static void note_begin(void) { has_begun = true; }

static bool is_refused_at_load(void) {
  return !has_begun && getenv(REFUSE_FORK_HANDLERS_AT_LOAD) != NULL;
}

/* In a shared library, pthread_atfork() calls this function of libc. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso);
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
                      void *dso) {
  int (*real)(void (*)(void), void (*)(void), void (*)(void), void *);
  *(void **)&real = next_one("__register_atfork");
  if (is_refused_at_load() || REFUSES(ask_fork_handlers)) return ENOMEM;
  return real(before, parent, child, dso);
}

#ifndef __GLIBC__
int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  int (*real)(void (*)(void), void (*)(void), void (*)(void));
  *(void **)&real = next_one("pthread_atfork");
  if (is_refused_at_load() || REFUSES(ask_fork_handlers)) return ENOMEM;
  return real(before, parent, child);
}
#endif

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t begin) {
  static void *(*real)(void *, size_t, int, int, int, off_t);
  if (real == NULL) *(void **)&real = next_one("mmap");
  if (!REFUSES(ask_map)) return real(at, size, protection, flags, file, begin);
  errno = ENOMEM;
  return MAP_FAILED;
}

/* The library calls posix_memalign() for alignments that malloc() does not guarantee. */
int posix_memalign(void **out, size_t alignment, size_t size) {
  static int (*real)(void **, size_t, size_t);
  if (real == NULL) *(void **)&real = next_one("posix_memalign");
  return REFUSES(ask_aligned) ? ENOMEM : real(out, alignment, size);
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

/* The library sees every clock except the monotonic clock alternate between a day ahead and a day
 * behind. */
static int64_t offset(clockid_t clock, const void *caller) {
  enum { DAY = 86400 };
  if (!is_of_library(caller)) return 0;
  if (clock != CLOCK_MONOTONIC) return ADD(asked_other_clock, 1) % 2 == 0 ? DAY : -DAY;
  ADD(asked_monotonic, 1);
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) *(void **)&real = next_one("clock_gettime");
  int result = real(clock, now);
  now->tv_sec += (time_t)offset(clock, __builtin_return_address(0));
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int (*real)(struct timeval *restrict, void *restrict);
  *(void **)&real = next_one("gettimeofday");
  int result = real(now, zone);
  now->tv_sec += (time_t)offset(CLOCK_REALTIME, __builtin_return_address(0));
  return result;
}

time_t time(time_t *out) {
  time_t (*real)(time_t *);
  *(void **)&real = next_one("time");
  time_t now = real(NULL) + (time_t)offset(CLOCK_REALTIME, __builtin_return_address(0));
  if (out != NULL) *out = now;
  return now;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

int eventfd(unsigned int count, int flags) {
  int (*real)(unsigned int, int);
  *(void **)&real = next_one("eventfd");
  if (!REFUSES(ask_eventfd)) return real(count, flags);
  errno = EMFILE;
  return -1;
}
