// Whether exit() has begun.

#include "shims.h"

// exit() first destroys its thread's `thread_local` objects, and then calls the exit handlers,
// starting with the most recent one. The destructors of static objects are exit handlers, too. The
// library's handler has to run before all others. Therefore the library gives the main thread an
// object whose destructor registers this handler. If main() calls pthread_exit(), that destructor
// runs early, and exit() first calls the handlers that have been registered since.
static int has_exit_begun;

static void exit_has_begun(void *unused) {
  (void)unused;
  __atomic_store_n(&has_exit_begun, true, __ATOMIC_RELAXED);
}

int __cxa_atexit(void (*destructor)(void *), void *object, void *dso);

static void objects_were_destroyed(void *unused) {
  (void)unused;
  __cxa_atexit(exit_has_begun, NULL, NULL);
}

#ifdef __APPLE__
// Registers a destructor for an object of the calling thread. The function is part of libSystem's
// ABI, but no header declares it.
void _tlv_atexit(void (*destructor)(void *), void *object);

void shims_watch_process_exit(void) {
  if (shims_is_main_thread()) _tlv_atexit(objects_were_destroyed, NULL);
}
#else
// The library must load even where these functions are missing. musl and glibc before 2.18 lack
// __cxa_thread_atexit_impl(), and dlsym() is in libdl before glibc 2.34.
typedef int at_thread_exit(void (*destructor)(void *), void *object, void *dso);
void *dlsym(void *library, const char *name) __attribute__((weak));
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__LP64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#elif defined(__GLIBC__) && defined(__riscv)
__asm__(".symver dlsym, dlsym@GLIBC_2.27");
#elif defined(__GLIBC__) && defined(__i386__)
__asm__(".symver dlsym, dlsym@GLIBC_2.0");
#elif defined(__GLIBC__) && defined(__arm__)
__asm__(".symver dlsym, dlsym@GLIBC_2.4");
#endif

static void call_if_there(const char *name) {
  void (*function)(void) = NULL;
  *(void **)&function = dlsym(NULL, name);
  if (function != NULL) function();
}

void shims_watch_process_exit(void) {
  at_thread_exit *at_exit = NULL;
  if (!shims_is_main_thread() || dlsym == NULL) return;
  *(void **)&at_exit = dlsym(NULL, "__cxa_thread_atexit_impl");
  if (at_exit == NULL) return;
  // Only the main thread's list of destructors will refer to the object. If another thread forks,
  // that list is unreachable in the child, so the leak sanitizer would report the object as a leak
  // there.
  call_if_there("__lsan_disable");
  // Any address in this library identifies the library.
  at_exit(objects_were_destroyed, NULL, &has_exit_begun);
  call_if_there("__lsan_enable");
}
#endif

bool shims_is_inside_exit(void) {
  return __atomic_load_n(&has_exit_begun, __ATOMIC_RELAXED) && shims_is_main_thread();
}
