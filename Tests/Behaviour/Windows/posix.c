/* See posix.h. */

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <io.h>
#include <malloc.h>
#include <process.h>
#include <stdarg.h>
#include <tlhelp32.h>

#undef malloc
#undef calloc
#undef realloc
#undef free

enum { LEFT_TO_LINUX = 77, HUNG = 98 };

void missing(const char *what) {
  fprintf(stderr, "needs Linux: %s\n", what);
  fflush(NULL);
  TerminateProcess(GetCurrentProcess(), LEFT_TO_LINUX);
  abort();
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { ALIGNMENT = 16 };

void *posix_malloc(size_t size) { return _aligned_malloc(size > 0 ? size : 1, ALIGNMENT); }
void *posix_calloc(size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return NULL;
  void *block = posix_malloc(count * size);
  return block != NULL ? memset(block, 0, count * size) : NULL;
}
void *posix_realloc(void *block, size_t size) {
  return _aligned_realloc(block, size > 0 ? size : 1, ALIGNMENT);
}
void posix_free(void *block) { _aligned_free(block); }

int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = _aligned_malloc(size > 0 ? size : 1, alignment);
  return *block != NULL ? 0 : ENOMEM;
}

static DWORD page_protection(int protection) {
  if (protection == PROT_NONE) return PAGE_NOACCESS;
  return (protection & PROT_WRITE) != 0 ? PAGE_READWRITE : PAGE_READONLY;
}

void *mmap(void *address, size_t size, int protection, int flags, int file, long offset) {
  (void)address, (void)flags, (void)file, (void)offset;
  void *block = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, page_protection(protection));
  return block != NULL ? block : MAP_FAILED;
}

int munmap(void *address, size_t size) {
  (void)size;
  return VirtualFree(address, 0, MEM_RELEASE) ? 0 : -1;
}

int mprotect(void *address, size_t size, int protection) {
  DWORD previous;
  return VirtualProtect(address, size, page_protection(protection), &previous) ? 0 : -1;
}

void *memmem(const void *in, size_t size, const void *what, size_t length) {
  const char *at = in;
  for (; size >= length; ++at, --size) {
    if (memcmp(at, what, length) == 0) return (void *)(uintptr_t)at;
  }
  return NULL;
}

/* ---- Processes ------------------------------------------------------------------------------- */

char **environ;

/* The harness does not have to start processes on Windows, because the script runs each test in a
 * separate process. */
int posix_spawn(pid_t *child, const char *path, void *actions, void *attributes,
                char *const arguments[], char *const environment[]) {
  (void)child, (void)path, (void)actions, (void)attributes, (void)arguments, (void)environment;
  missing("posix_spawn");
}

pid_t waitpid(pid_t child, int *status, int options) {
  (void)child, (void)status, (void)options;
  missing("waitpid");
}

static unsigned __stdcall end_after(void *seconds) {
  Sleep((DWORD)(uintptr_t)seconds * 1000);
  fprintf(stderr, "the test hung\n");
  fflush(NULL);
  TerminateProcess(GetCurrentProcess(), HUNG);
  return 0;
}

void alarm(unsigned seconds) {
  _beginthreadex(NULL, 0, end_after, (void *)(uintptr_t)seconds, 0, NULL);
}

int pause(void) {
  Sleep(INFINITE);
  return -1;
}

long syscall(long number, ...) {
  if (number == SYS_gettid) return (long)GetCurrentThreadId();
  if (number == SYS_getpid) return (long)GetCurrentProcessId();
  errno = EPERM; /* no membarrier */
  return -1;
}

/* Windows has no filter for system calls, so such requests succeed without effect. */
int prctl(int option, ...) {
  if (option == PR_SET_NAME || option == PR_GET_NAME) missing("prctl");
  return 0;
}

long sysconf(int name) { return name == _SC_PAGESIZE ? 4096 : 65536; }

void *dlopen(const char *name, int flags) {
  return (flags & RTLD_NOLOAD) != 0 ? GetModuleHandleA(name) : LoadLibraryA(name);
}
void *dlsym(void *library, const char *name) {
  return (void *)(uintptr_t)GetProcAddress(library, name);
}
int dlclose(void *library) { return FreeLibrary(library) ? 0 : -1; }

/* ---- Threads --------------------------------------------------------------------------------- */

static HANDLE snapshot;
static bool has_begun;

DIR *posix_opendir(const char *path) {
  if (strcmp(path, "/proc/self/task") != 0) missing("/proc");
  snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
  has_begun = false;
  return snapshot != INVALID_HANDLE_VALUE ? (DIR *)snapshot : NULL;
}

struct dirent *posix_readdir(DIR *directory) {
  static struct dirent entry;
  THREADENTRY32 thread = {.dwSize = sizeof thread};
  BOOL ok = has_begun ? Thread32Next(directory, &thread) : Thread32First(directory, &thread);
  has_begun = true;
  while (ok && thread.th32OwnerProcessID != GetCurrentProcessId()) {
    ok = Thread32Next(directory, &thread);
  }
  if (!ok) return NULL;
  snprintf(entry.d_name, sizeof entry.d_name, "%lu", thread.th32ThreadID);
  return &entry;
}

int posix_closedir(DIR *directory) { return CloseHandle(directory) ? 0 : -1; }

/* Windows has no file that contains a thread's state. This substitute waits until the thread has
 * had time to fall asleep, and then reports that it is sleeping. */
FILE *open_state(const char *path, const char *mode);
FILE *open_state(const char *path, const char *mode) {
  FILE *file = tmpfile();
  (void)path, (void)mode;
  Sleep(100);
  if (file != NULL) fputs("(a thread) S", file), rewind(file);
  return file;
}

int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *deadline) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const long long milliseconds = (deadline->tv_sec - now.tv_sec) * 1000LL +
                                 (deadline->tv_nsec - now.tv_nsec) / 1000000;
  const HANDLE handle = pthread_gethandle(thread);
  if (handle != NULL &&
      WaitForSingleObject(handle, milliseconds > 0 ? (DWORD)milliseconds : 0) == WAIT_TIMEOUT)
    return ETIMEDOUT;
  return pthread_join(thread, result);
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

int poll(struct pollfd *polled, unsigned long count, int milliseconds) {
  if (count != 1) missing("poll with several descriptors");
  const DWORD result = WaitForSingleObject((HANDLE)(intptr_t)polled->fd,
                                           milliseconds >= 0 ? (DWORD)milliseconds : INFINITE);
  polled->revents = result == WAIT_OBJECT_0 ? POLLIN : 0;
  return result == WAIT_FAILED ? -1 : polled->revents != 0;
}

int pipe(int ends[2]) {
  (void)ends;
  missing("pipe");
}
int fcntl(int descriptor, int command, ...) {
  (void)descriptor, (void)command;
  missing("fcntl");
}

/* Replaces is_posix() in tests of reports, because on Windows reports contain the locations of
 * functions. */
bool is_without_places(void);
bool is_without_places(void) { return false; }
