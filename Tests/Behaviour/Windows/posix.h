/* Provides, for MinGW, the functions of POSIX and Linux that the C harness uses. The compiler
 * includes this file before each source, and finds an empty file for each header that MinGW lacks.
 *
 * A function without a counterpart on Windows calls missing(), which ends the test with the status
 * for tests that only Linux can run. */

#ifndef WINDOWS_POSIX_H
#define WINDOWS_POSIX_H

#define __USE_MINGW_ANSI_STDIO 1
#define _WIN32_WINNT 0x0602
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#define tell harness_tell /* MinGW already has a function with this name */
#undef environ
#undef pthread_sigmask

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((noreturn)) void missing(const char *what);
/* Like missing(), but with a result, so that a macro can use the call in an expression. */
static inline int missing_value(const char *what) { missing(what); }
#define MISSING(WHAT) missing_value(WHAT)

/* ---- Memory ---------------------------------------------------------------------------------- */

/* All blocks come from the same allocator, so that free() also accepts blocks from
 * posix_memalign(). */

void *posix_malloc(size_t size);
void *posix_calloc(size_t count, size_t size);
void *posix_realloc(void *block, size_t size);
void posix_free(void *block);
int posix_memalign(void **block, size_t alignment, size_t size);
#ifndef __cplusplus
#define malloc posix_malloc
#define calloc posix_calloc
#define realloc posix_realloc
#define free posix_free
#endif

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_NORESERVE 64
#define MAP_FAILED ((void *)-1)
void *mmap(void *address, size_t size, int protection, int flags, int file, long offset);
int munmap(void *address, size_t size);
int mprotect(void *address, size_t size, int protection);
#define mincore(ADDRESS, SIZE, PAGES) MISSING("mincore")
void *memmem(const void *in, size_t size, const void *what, size_t length);

/* ---- Processes ------------------------------------------------------------------------------- */

#define fork() MISSING("fork")
#define kill(PROCESS, SIGNAL) MISSING("kill")
extern char **environ;
int posix_spawn(pid_t *child, const char *path, void *actions, void *attributes,
                char *const arguments[], char *const environment[]);
pid_t waitpid(pid_t child, int *status, int options);
#define WNOHANG 1
#define WIFEXITED(STATUS) true
#define WEXITSTATUS(STATUS) (STATUS)
#define WIFSIGNALED(STATUS) ((void)(STATUS), false)
#define WTERMSIG(STATUS) (STATUS)
void alarm(unsigned seconds);
int pause(void);

enum { SYS_gettid, SYS_membarrier, SYS_getpid, SYS_clone, SYS_clone3 };
long syscall(long number, ...);
enum { PR_SET_NAME, PR_GET_NAME, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER };
int prctl(int option, ...);
enum { SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS,
       SECCOMP_RET_TRAP };
struct seccomp_data { int nr; uint64_t args[6]; };
struct sock_filter { size_t values[4]; };
struct sock_fprog { unsigned short len; struct sock_filter *filter; };
#define BPF_STMT(CODE, K) {{0, 0, 0, (size_t)(K)}}
#define BPF_JUMP(CODE, K, YES, NO) {{0, (YES), (NO), (size_t)(K)}}
typedef struct ucontext { struct { long long gregs[23]; } uc_mcontext; } ucontext_t;
enum { REG_RDI = 8, REG_RAX = 13 };

enum { _SC_PAGESIZE, _SC_THREAD_STACK_MIN };
long sysconf(int name);
struct rlimit { unsigned long rlim_cur, rlim_max; };
#define RLIMIT_NOFILE 7
#define getrlimit(RESOURCE, LIMIT) ((void)(LIMIT), MISSING("getrlimit"))
#define setrlimit(RESOURCE, LIMIT) ((void)(LIMIT), MISSING("setrlimit"))
#define getauxval(TYPE) ((void *)(intptr_t)MISSING("getauxval"))
#define AT_SYSINFO_EHDR 33

#define RTLD_LAZY 1
#define RTLD_NOW 2
#define RTLD_NOLOAD 4
#define RTLD_LOCAL 0
#define RTLD_DEFAULT NULL
void *dlopen(const char *name, int flags);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
#define dlerror() "dlerror"

/* ---- Threads and signals --------------------------------------------------------------------- */

/* posix_opendir() lists the threads of the process, as the folder /proc/self/task does on Linux. */

DIR *posix_opendir(const char *path);
struct dirent *posix_readdir(DIR *directory);
int posix_closedir(DIR *directory);
#define opendir posix_opendir
#define readdir posix_readdir
#define closedir posix_closedir
int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *deadline);
#define pthread_getattr_np(THREAD, ATTRIBUTES) MISSING("pthread_getattr_np")
#define pthread_getattr_default_np(ATTRIBUTES) MISSING("pthread_getattr_default_np")
#undef pthread_kill
#define pthread_kill(THREAD, SIGNAL) ((void)(THREAD), MISSING("signals"))

enum { SIGHUP = 1, SIGTRAP = 5, SIGBUS = 7, SIGKILL = 9, SIGUSR1, SIGUSR2 = 12, SIGPIPE, SIGALRM,
       SIGCHLD = 17, SIGPROF = 27, SIGSYS = 31, SIGRTMIN = 34, SIGRTMAX = 64 };
typedef struct siginfo { int si_signo; } siginfo_t;
struct sigaction {
  void (*sa_handler)(int);
  void (*sa_sigaction)(int, siginfo_t *, void *);
  int sa_flags, sa_mask;
};
enum { SA_SIGINFO = 4, SA_RESTART = 8 };
typedef struct signal_set { int unused; } posix_sigset_t;
#define sigset_t posix_sigset_t
#define sigaction(SIGNAL, ACTION, PREVIOUS) ((void)(ACTION), MISSING("signals"))
#define sigfillset(SET) ((void)(SET), MISSING("signals"))
#define sigemptyset(SET) ((void)(SET), MISSING("signals"))
#define sigaddset(SET, SIGNAL) ((void)(SET), MISSING("signals"))
#define sigismember(SET, SIGNAL) ((void)(SET), MISSING("signals"))
#define pthread_sigmask(HOW, SET, PREVIOUS) MISSING("signals")
#define strsignal(SIGNAL) ((void)(SIGNAL), "a signal")

/* ---- Descriptors ----------------------------------------------------------------------------- */

/* The library's descriptors are handles of event objects. */

struct pollfd { int fd; short events, revents; };
#define POLLIN 1
int poll(struct pollfd *polled, unsigned long count, int milliseconds);
int pipe(int ends[2]);
int fcntl(int descriptor, int command, ...);
enum { F_GETFD = 1, F_GETFL = 3, FD_CLOEXEC = 1, O_NONBLOCK = 2048, O_CLOEXEC = 0 };

#ifdef __cplusplus
}
#endif

#endif
