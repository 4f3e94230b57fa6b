#include "child.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 30000 };

pid_t begin_child(void) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  return child;
}

/* The parent measures the time, since the child may hang before its fork() returns. */
int end_of_child(pid_t child) {
  int status = 0;
  pid_t ended = 0;
  for (int waited_ms = 0; ended == 0; ++waited_ms) {
    if (waited_ms == TIMEOUT_MS) kill(child, SIGALRM);
    if (waited_ms == TIMEOUT_MS + 1000) kill(child, SIGKILL);
    ended = waitpid(child, &status, WNOHANG);
    CHECK(ended >= 0 || errno == EINTR);
    if (ended < 0) ended = 0;
    if (ended == 0) pause_ms(1);
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
