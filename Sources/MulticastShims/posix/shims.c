// The functions for every system that has POSIX 2008 with threads.

#include "shims.h"

#ifdef SHIMS_POSIX

#include "../common/threads.h"
#include "posix.h"

// POSIX has no barrier for other threads, so all multicasts use full fences.
bool shims_membarrier_register(void) { return false; }
bool shims_membarrier(void) { return false; }

// ---- Memory --------------------------------------------------------------------------------

// POSIX has no function that returns memory to the system, neither the pages of a block nor
// malloc()'s free memory.
size_t shims_discard(void *block, size_t size) {
  (void)block, (void)size;
  return 0;
}
void shims_trim_malloc(void) {}

// The pages are never unmapped, so there is no need to remember the start of the block that
// contains them.
void *shims_map(size_t size) {
  const int error = errno;
  const size_t page = 4096;
  char *block = calloc(1, size + page);
  errno = error;
  return block == NULL ? NULL : block + (page - (uintptr_t)block % page) % page;
}

// ---- Threads -------------------------------------------------------------------------------

// POSIX does not number threads, so this function does.
uint32_t shims_get_thread_id(void) {
  static uint32_t last;
  static __thread uint32_t own SHIMS_TLS;
  if (own == 0) own = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return own;
}

uint64_t shims_get_process_id(void) { return (uint64_t)getpid(); }

// POSIX has no function that identifies the main thread. The first call comes from the thread that
// loads the library. That thread is assumed to be the main thread.
bool shims_is_main_thread(void) {
#ifdef __APPLE__
  return pthread_main_np() != 0;
#else
  static uintptr_t main_thread;
  if (main_thread == 0) main_thread = (uintptr_t)pthread_self();
  return main_thread == (uintptr_t)pthread_self();
#endif
}

// POSIX has neither thread names nor a way to locate functions.
void shims_set_thread_name(const shims_thread_name *name) { (void)name; }
void shims_read_thread_name(uint32_t thread, shims_label *name) {
  (void)thread;
  memset(name, 0, sizeof *name);
}
bool shims_locate(uint64_t address, shims_place *place) {
  (void)address, (void)place;
  return false;
}
void shims_locate_none_in_child(void) {}

long shims_write_once(int descriptor, const void *text, size_t size) {
  int previous, ignored;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous);
  const ssize_t written = write(descriptor, text, size);
  pthread_setcancelstate(previous, &ignored);
  return (long)written;
}

// ---- Fork ----------------------------------------------------------------------------------

void shims_lock_system(void) {
  shims_lock_pipes();
  shims_lock_beds();
}
void shims_unlock_system(bool is_child) {
  shims_unlock_beds(is_child);
  shims_unlock_pipes();
}

#endif
