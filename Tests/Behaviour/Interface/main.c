/* The command line of the interface tests. */

#include "harness.h"
#include "linux.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static test *first;
static const struct membarrier_option {
  const char *name;
  void (*apply)(void);
} membarrier_options[] = {{"--without-membarrier", deny_membarrier},
                          {"--end-by-membarrier", end_by_membarrier},
                          {"--posix", end_by_membarrier}};
static const struct membarrier_option *membarrier; /* NULL: no filter */

void test_register(test *registered) {
  test **place = &first;
  while (*place != NULL && strcmp((*place)->name, registered->name) < 0) place = &(*place)->next;
  registered->next = *place;
  *place = registered;
}

#ifdef __linux__
enum { IS_LINUX = 1 };
#else
enum { IS_LINUX = 0 };
#endif
bool is_without_membarrier(void) { return membarrier != NULL || !IS_LINUX; }
bool is_posix(void) {
  return !IS_LINUX || (membarrier != NULL && strcmp(membarrier->name, "--posix") == 0);
}

enum { NEEDS_LINUX = 77 };

void needs_linux(const char *what) {
  if (!is_posix()) return;
  fprintf(stderr, "needs Linux: %s\n", what);
  exit(NEEDS_LINUX);
}

void needs_kernel(const char *what) {
  if (!IS_LINUX) needs_linux(what);
}

static void usage(const char *program) {
  printf("Usage: %s [--without-membarrier | --end-by-membarrier | --posix]\n"
         "       [--list | --in-process NAME | FILTER...]\n\n"
         "Runs the tests whose names contain one of the filters (default: all), each in a process\n"
         "of its own, and prints which passed.\n\n"
         "  --list                print the names\n"
         "  --in-process NAME     run one test in this process, for a debugger\n"
         "  --without-membarrier  have the kernel refuse membarrier, to test the fallback\n"
         "  --end-by-membarrier   have membarrier end the process, to test a build without it\n"
         "  --posix               the same for MULTICAST_SYSTEM=posix; tests that need Linux end\n"
         "                        there, and are counted\n",
         program);
}

static bool matches(const char *name, char **filters) {
  if (*filters == NULL) return true;
  for (; *filters != NULL; ++filters) {
    if (strstr(name, *filters) != NULL) return true;
  }
  return false;
}

/* Kills the processes that a test has left behind, such as hanging children, since no other process
 * waits for them. */
static void end_orphans(void) {
  char path[64];
  long orphan;
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  do {
    FILE *children = fopen(path, "r");
    orphan = 0;
    /* the processes cannot be found without this file, which some kernels lack */
    if (children == NULL) return;
    if (fscanf(children, "%ld", &orphan) == 1) {
      kill((pid_t)orphan, SIGKILL);
      waitpid((pid_t)orphan, NULL, 0);
    }
    fclose(children);
  } while (orphan > 0);
}

/* Runs the test and returns the exit status of its process. */
static int run_in_process_of_its_own(const char *program, const test *t) {
  const char *arguments[5];
  int count = 0, status = 0;
  pid_t child;
  arguments[count++] = program;
  if (membarrier != NULL) arguments[count++] = membarrier->name;
  arguments[count++] = "--in-process";
  arguments[count++] = t->name;
  arguments[count] = NULL;
  fflush(NULL);
  if (IS_LINUX) program = "/proc/self/exe";
  if (posix_spawn(&child, program, NULL, NULL, (char **)(uintptr_t)arguments, environ) !=
      0) {
    perror("posix_spawn");
    return 1;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    fprintf(stderr, "%s: %s was ended by signal %d (%s)\n", t->file, t->name, WTERMSIG(status),
            WTERMSIG(status) == SIGALRM ? "it hung" : strsignal(WTERMSIG(status)));
  end_orphans();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
  char **arguments = argv + 1;
  int passed = 0, failed = 0, left = 0;
  const test *t;
  for (size_t i = 0; i < sizeof membarrier_options / sizeof *membarrier_options; ++i) {
    if (*arguments == NULL || strcmp(*arguments, membarrier_options[i].name) != 0) continue;
    membarrier = &membarrier_options[i];
    ++arguments;
  }
  if (*arguments != NULL && (strcmp(*arguments, "--help") == 0 || strcmp(*arguments, "-h") == 0)) {
    usage(argv[0]);
    return 0;
  }
  if (*arguments != NULL && strcmp(*arguments, "--list") == 0) {
    for (t = first; t != NULL; t = t->next) puts(t->name);
    return 0;
  }
  if (*arguments != NULL && strcmp(*arguments, "--in-process") == 0) {
    for (t = first; t != NULL; t = t->next) {
      if (arguments[1] != NULL && strcmp(t->name, arguments[1]) == 0) {
        alarm(120); /* kills a hanging test */
        if (membarrier != NULL) membarrier->apply();
        t->run();
        return 0;
      }
    }
    fprintf(stderr, "No test is called '%s'; --list prints the names.\n",
            arguments[1] ? arguments[1] : "");
    return 2;
  }
  if (*arguments != NULL && **arguments == '-') {
    usage(argv[0]);
    return 2;
  }
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* orphans become children of this process */
  for (t = first; t != NULL; t = t->next) {
    if (!matches(t->name, arguments)) continue;
    int status = run_in_process_of_its_own(argv[0], t);
    bool is_left = status == NEEDS_LINUX && is_posix();
    printf("%s %s\n", status == 0 ? "ok  " : is_left ? "left" : "FAIL", t->name);
    if (status == 0) {
      ++passed;
    } else if (is_left) {
      ++left;
    } else {
      ++failed;
    }
  }
  printf("%d passed, %d failed", passed, failed);
  if (is_posix()) printf(", %d left to Linux", left);
  printf("\n");
  if (passed + failed == 0) fprintf(stderr, "No test matches; --list prints the names.\n");
  return failed == 0 && passed > 0 ? 0 : 1;
}
