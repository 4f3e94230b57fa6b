/* Tries two operations that QEMU's user mode may not support. Does not use the library. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

/* Installs a system call filter that allows all calls. */
static int set_filter(void) {
  struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog program = {1, &allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : 1;
}

static void *sleep_for_ever(void *unused) {
  for (;;) pause();
  return unused;
}

static void *end_at_once(void *unused) { return unused; }

/* Forks while this process has two threads, and starts a thread in the child. */
static int start_in_a_child(void) {
  pthread_t other;
  int status = 1;
  if (pthread_create(&other, NULL, sleep_for_ever, NULL) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    if (pthread_create(&other, NULL, end_at_once, NULL) != 0) _exit(1);
    _exit(pthread_join(other, NULL));
  }
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "seccomp") == 0) return set_filter();
  if (argc == 2 && strcmp(argv[1], "child") == 0) return start_in_a_child();
  fprintf(stderr, "Usage: probe seccomp | child\n");
  return 2;
}
