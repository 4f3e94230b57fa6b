// Whether exit() has begun.

#include "shims.h"

// exit() first destroys the objects of its thread (`thread_local` in C++), and then calls its
// handlers, the last one that was registered first; destructors of static objects are such
// handlers. So the end of an object of the main thread registers a handler, which is called before
// all others. The end of the thread itself comes here, too, if main() calls pthread_exit(): the
// handler is then called as late as any other.
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
// Registers the destructor of a thread's object. The function is part of libSystem's ABI, but no
// header declares it.
void _tlv_atexit(void (*destructor)(void *), void *object);

void shims_watch_process_exit(void) {
  if (shims_is_main_thread()) _tlv_atexit(objects_were_destroyed, NULL);
}
#else
// Of libc. Not called by its name where it may be missing: glibc has the function for objects of a
// thread since 2.18, musl has none; and before glibc 2.34 libdl has dlsym().
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
  // The list of objects is the thread's. In the child of a fork that another thread makes it is out
  // of reach, and the leak sanitizer would take it for a leak.
  call_if_there("__lsan_disable");
  // Any address of this library tells it apart from others.
  at_exit(objects_were_destroyed, NULL, &has_exit_begun);
  call_if_there("__lsan_enable");
}
#endif

bool shims_is_inside_exit(void) {
  return __atomic_load_n(&has_exit_begun, __ATOMIC_RELAXED) && shims_is_main_thread();
}
