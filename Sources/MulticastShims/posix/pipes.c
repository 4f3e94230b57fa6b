// Implements event descriptors with pipes, as the counterpart of eventfd.

#include "shims.h"

#ifdef SHIMS_POSIX

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "posix.h"

// The two ends of a pipe. `own` is the read end, and the program polls a duplicate of it. If the
// program closes that duplicate by mistake, `own` stays open, so a write does not raise SIGPIPE.
typedef struct ends {
  int own, write;
} ends;

// This array is indexed by the program's descriptor. The mutex guards it. The mutex is also held
// while a pipe is created and during a fork, so that a child does not inherit a pipe that is
// missing from the array.
static ends *pipes;
static int pipe_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void shims_lock_pipes(void) { shims_lock_mutex(&mutex); }
void shims_unlock_pipes(void) { pthread_mutex_unlock(&mutex); }

static ends ends_of(int descriptor) {
  shims_lock_mutex(&mutex);
  const ends found = pipes[descriptor];
  pthread_mutex_unlock(&mutex);
  return found;
}

static bool set_flags(int descriptor) {
  return fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 && fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0;
}

static void close_ends(ends both) {
  close(both.own);
  close(both.write);
}

static bool open_ends(ends *both) {
  int descriptors[2];
  if (pipe(descriptors) != 0) return false;
  both->own = descriptors[0];
  both->write = descriptors[1];
  if (set_flags(both->own) && set_flags(both->write)) return true;
  close_ends(*both);
  return false;
}

static bool has_room(int descriptor) {
  if (descriptor < pipe_count) return true;
  const int count = descriptor + 64;
  ends *larger = realloc(pipes, (size_t)count * sizeof *pipes);
  if (larger == NULL) return false;
  pipes = larger;
  pipe_count = count;
  return true;
}

int shims_event_open(void) {
  const shims_quiet quiet = shims_begin_quiet();
  ends both;
  int descriptor = -1;
  shims_lock_mutex(&mutex);
  if (open_ends(&both)) {
    descriptor = fcntl(both.own, F_DUPFD_CLOEXEC, 0);
    if (descriptor >= 0 && has_room(descriptor)) {
      pipes[descriptor] = both;
    } else {
      if (descriptor >= 0) close(descriptor);
      close_ends(both);
      descriptor = -1;
    }
  }
  pthread_mutex_unlock(&mutex);
  shims_end_quiet(quiet);
  return descriptor;
}

void shims_event_set(int descriptor) {
  const shims_quiet quiet = shims_begin_quiet();
  const int end = ends_of(descriptor).write;
  while (write(end, "", 1) < 0 && errno == EINTR) {
  }
  shims_end_quiet(quiet);
}

void shims_event_clear(int descriptor) {
  const shims_quiet quiet = shims_begin_quiet();
  const int end = ends_of(descriptor).own;
  char byte;
  while (read(end, &byte, 1) < 0 && errno == EINTR) {
  }
  shims_end_quiet(quiet);
}

void shims_event_close(int descriptor) {
  const shims_quiet quiet = shims_begin_quiet();
  close_ends(ends_of(descriptor));
  close(descriptor);
  shims_end_quiet(quiet);
}

// The program's descriptor stays open, so no other thread can reuse its number. Two descriptors are
// closed before two are opened, so the process does not exceed its limit on descriptors.
int shims_event_replace(int descriptor) {
  const shims_quiet quiet = shims_begin_quiet();
  shims_lock_mutex(&mutex);
  ends *both = &pipes[descriptor];
  close_ends(*both);
  if (!open_ends(both) || dup2(both->own, descriptor) < 0 ||
      fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    close(descriptor);
    descriptor = -1;
  }
  pthread_mutex_unlock(&mutex);
  shims_end_quiet(quiet);
  return descriptor;
}

#endif
