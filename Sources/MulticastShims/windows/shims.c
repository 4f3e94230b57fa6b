// The functions for Windows 8 and later on x86-64. This is a preview that has been run only under
// Wine.
//
// The functions preserve the error code of GetLastError(), because the error code belongs to the
// program's code.

#include "../include/shims.h"

#ifdef SHIMS_WINDOWS

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <limits.h>
#include <malloc.h>
#include <process.h>
#include <stdlib.h>

// ---- Fences --------------------------------------------------------------------------------

// In Wine 8.0, FlushProcessWriteBuffers() does nothing, and a program cannot detect this. Therefore
// the library uses full fences under Wine.
bool shims_membarrier_register(void) {
#ifdef MULTICAST_WITHOUT_MEMBARRIER
  return false;
#else
  const DWORD error = GetLastError();
  const HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
  const bool is_windows = ntdll != NULL && GetProcAddress(ntdll, "wine_get_version") == NULL;
  SetLastError(error);
  return is_windows;
#endif
}

bool shims_membarrier(void) {
  FlushProcessWriteBuffers();
  return true;
}

// ---- Memory --------------------------------------------------------------------------------

// free() must not be called with a block from _aligned_malloc(), and shims_deallocate() does not
// know the alignment. So all blocks come from _aligned_malloc().
void *shims_allocate(size_t size, size_t alignment) {
  const size_t least = 2 * sizeof(void *);
  return _aligned_malloc(size, alignment > least ? alignment : least);
}

void shims_deallocate(void *block) { _aligned_free(block); }

// Returns no pages to the system. After MEM_RESET, a page may keep its contents at first and lose
// them later. The core expects each page to be either cleared immediately or left unchanged.
size_t shims_discard(void *block, size_t size) {
  (void)block, (void)size;
  return 0;
}

void *shims_map(size_t size) {
  const DWORD error = GetLastError();
  void *block = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  SetLastError(error);
  return block;
}

void shims_trim_malloc(void) {
  const DWORD error = GetLastError();
  _heapmin();
  SetLastError(error);
}

// ---- The end of the process ----------------------------------------------------------------

// ntdll exports this function, but no header declares it. It returns true as soon as Windows has
// stopped all threads except the one that ends the process. The stopped threads may have been
// holding locks.
__declspec(dllimport) BOOLEAN NTAPI RtlDllShutdownInProgress(void);

// While exit() runs the program's handlers, other threads are still running. This function still
// returns false, so that removals wait for these threads.
bool shims_is_inside_exit(void) { return RtlDllShutdownInProgress(); }

// Called when no other thread is left that could wake the calling thread. Windows itself uses the
// same exit code when it ends a process in which a thread would otherwise wait for a critical
// section forever.
static void end_instead_of_hanging(void) {
  const UINT is_terminating = 0xC000004Bu;  // STATUS_THREAD_IS_TERMINATING
  TerminateProcess(GetCurrentProcess(), is_terminating);
}

// ---- Waiting -------------------------------------------------------------------------------

uint64_t shims_now_ns(void) {
  LARGE_INTEGER ticks, per_second;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&per_second);
  const uint64_t second = 1000000000u;
  const uint64_t count = (uint64_t)ticks.QuadPart, rate = (uint64_t)per_second.QuadPart;
  return count / rate * second + count % rate * second / rate;
}

// Rounds up. If it rounded down, the caller would spin during the last millisecond.
static DWORD milliseconds_until(uint64_t deadline_ns) {
  if (deadline_ns == UINT64_MAX) return INFINITE;
  const uint64_t now_ns = shims_now_ns();
  if (now_ns >= deadline_ns) return 0;
  const uint64_t rest = (deadline_ns - now_ns - 1) / 1000000u + 1;
  return rest < INFINITE ? (DWORD)rest : INFINITE - 1;
}

void shims_futex_wait(uint32_t *word, uint32_t value, uint64_t deadline_ns) {
  const DWORD error = GetLastError();
  const DWORD timeout = milliseconds_until(deadline_ns);
  if (timeout == INFINITE && shims_is_inside_exit()) end_instead_of_hanging();
  WaitOnAddress(word, &value, sizeof value, timeout);
  SetLastError(error);
}

void shims_futex_wake(uint32_t *word, int count) {
  if (count > 1) {
    WakeByAddressAll(word);
  } else {
    WakeByAddressSingle(word);
  }
}

void shims_backoff(void) {
  const DWORD error = GetLastError();
  Sleep(1);
  SetLastError(error);
}

// ---- Event descriptors ---------------------------------------------------------------------

// A descriptor is the handle of an event object. The handle fits into an int, because 64-bit
// Windows uses only 32 bits of a handle and sign-extends them.
static HANDLE event_of(int descriptor) { return (HANDLE)(intptr_t)descriptor; }

int shims_event_open(void) {
  const DWORD error = GetLastError();
  const HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
  SetLastError(error);
  return event != NULL ? (int)(intptr_t)event : -1;
}

void shims_event_set(int descriptor) {
  const DWORD error = GetLastError();
  SetEvent(event_of(descriptor));
  SetLastError(error);
}

void shims_event_clear(int descriptor) {
  const DWORD error = GetLastError();
  ResetEvent(event_of(descriptor));
  SetLastError(error);
}

void shims_event_close(int descriptor) {
  const DWORD error = GetLastError();
  CloseHandle(event_of(descriptor));
  SetLastError(error);
}

// Windows has no fork.
int shims_event_replace(int descriptor) { return descriptor; }
bool shims_watch_fork(void) { return true; }
void shims_lock_system(void) {}
void shims_unlock_system(bool is_child) { (void)is_child; }

// ---- Threads -------------------------------------------------------------------------------

typedef struct thread_start {
  void *(*body)(void *);
  void *argument;
} thread_start;

static unsigned __stdcall run_thread(void *allocated) {
  const thread_start start = *(thread_start *)allocated;
  free(allocated);
  start.body(start.argument);
  return 0;
}

bool shims_start_thread(void *(*body)(void *), void *argument, size_t stack_size) {
  const DWORD error = GetLastError();
  uintptr_t thread = 0;
  thread_start *start = stack_size <= UINT_MAX ? malloc(sizeof *start) : NULL;
  if (start != NULL) {
    start->body = body;
    start->argument = argument;
    thread = _beginthreadex(NULL, (unsigned)stack_size, run_thread, start,
                            STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (thread == 0) free(start);
  }
  if (thread != 0) CloseHandle((HANDLE)thread);
  SetLastError(error);
  return thread != 0;
}

uint32_t shims_get_thread_id(void) { return GetCurrentThreadId(); }
uint64_t shims_get_process_id(void) { return GetCurrentProcessId(); }

// Debuggers show the name. SetThreadDescription() was added in version 1607 of Windows 10.
void shims_set_thread_name(const shims_thread_name *name) {
  typedef HRESULT WINAPI set_description(HANDLE thread, PCWSTR description);
  WCHAR wide[sizeof name->text];
  const DWORD error = GetLastError();
  const HMODULE kernel = GetModuleHandleW(L"kernelbase.dll");
  const FARPROC found = kernel != NULL ? GetProcAddress(kernel, "SetThreadDescription") : NULL;
  set_description *set = (set_description *)(void *)found;
  if (set != NULL && name->text[0] != '\0' &&
      MultiByteToWideChar(CP_UTF8, 0, name->text, -1, wide, sizeof name->text) > 0)
    set(GetCurrentThread(), wide);
  SetLastError(error);
}

// GetThreadDescription() allocates memory, which a report must not do.
void shims_read_thread_name(uint32_t thread, shims_label *name) {
  (void)thread;
  memset(name, 0, sizeof *name);
}

// ---- The end of threads --------------------------------------------------------------------

static DWORD exit_key = FLS_OUT_OF_INDEXES;

// Wine 8.0 holds a process-wide lock while it calls this function. Another thread that ends may
// wait for that lock while it holds the loader's lock. If this function called the loader, for
// instance by GetModuleHandle(), the two threads would wait for each other forever.
//
// Windows also calls this function on the thread that ends the process, after it has stopped the
// other threads.
static void WINAPI thread_ends(void *record) {
  if (record != NULL && !shims_is_inside_exit()) shims_thread_did_end(record);
}

// The library must stay loaded, because every thread that has used it calls thread_ends() later.
bool shims_exit_key_init(void) {
  const DWORD error = GetLastError();
  HMODULE library;
  if (exit_key == FLS_OUT_OF_INDEXES &&
      GetModuleHandleExW(
          GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
          (LPCWSTR)(uintptr_t)&thread_ends, &library))
    exit_key = FlsAlloc(thread_ends);
  SetLastError(error);
  return exit_key != FLS_OUT_OF_INDEXES;
}

bool shims_watch_exit(void *record) {
  const DWORD error = GetLastError();
  const bool ok = FlsSetValue(exit_key, record);
  SetLastError(error);
  return ok;
}

// ---- Swift's standard library --------------------------------------------------------------

// Swift's standard library calls these two functions, but only in code that the core does not use.
// The linker therefore removes that code together with these functions.
int posix_memalign(void **block, size_t alignment, size_t size);
int posix_memalign(void **block, size_t alignment, size_t size) {
  (void)block, (void)alignment, (void)size;
  abort();
}

void arc4random_buf(void *block, size_t size);
void arc4random_buf(void *block, size_t size) {
  (void)block, (void)size;
  abort();
}

// ---- Race detectors ------------------------------------------------------------------------

// The race detectors that the core supports do not exist on Windows.
bool shims_races_are_detected(void) { return false; }
void shims_happens_before(void *address) { (void)address; }
void shims_happens_after(void *address) { (void)address; }

#endif
