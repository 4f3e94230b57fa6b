/* A queue's descriptor is readable if and only if calls are waiting. */

#include "notes.h"
#include "queues.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

TEST_OF_QUEUE(queue_fd_asked_for_when_calls_wait_is_readable) {
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  int fd = multicast_queue_fd(q);
  CHECK(is_readable(fd));
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(!is_readable(fd));
}

static int watched_fd;

FUNCTION(watch_inside, requeuer *r) {
  CHECK(!is_readable(watched_fd)); /* the running call no longer counts as waiting */
  if (r->left-- > 0) {
    CHECK_EQ(invoke_number(r->target, 1), 1);
    CHECK(is_readable(watched_fd));
  }
}

TEST(queue_fd_is_readable_inside_a_call_exactly_while_others_wait) {
  requeuer r;
  begin_requeuing(&r, watch_inside, 3);
  watched_fd = multicast_queue_fd(r.queue);
  CHECK_EQ(multicast_queue_run(r.queue, 10), 4);
  CHECK(!is_readable(watched_fd));
}

TEST_OF_MULTICAST(queue_fd_is_minus_1_for_what_is_no_queue) {
  multicast_queue q = default_queue(), none = {0}, forged;
  CHECK_EQ(multicast_queue_fd(none), -1);
  forged.id = m.id;
  CHECK_EQ(multicast_queue_fd(forged), -1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(multicast_queue_fd(q), -1);
}

TEST(queue_fd_is_closed_by_destroy) {
  multicast_queue q = default_queue(), other = default_queue();
  int fd = multicast_queue_fd(q), kept = multicast_queue_fd(other);
  CHECK(fd >= 0 && kept >= 0 && fd != kept);
  CHECK(fcntl(fd, F_GETFD) >= 0);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
  CHECK(fcntl(kept, F_GETFD) >= 0);
}

TEST(queue_fd_is_not_passed_on_to_other_programs) {
  CHECK((fcntl(multicast_queue_fd(default_queue()), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_OF_QUEUE(queue_fd_is_minus_1_without_descriptors_and_works_later) {
  struct rlimit old;
  add_queued(m, noting('a'), q);
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  struct rlimit few = old;
  few.rlim_cur = 0;
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  CHECK_EQ(multicast_queue_fd(q), -1);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  int fd = multicast_queue_fd(q);
  CHECK(fd >= 0);
  CHECK(is_readable(fd));
}

static int lowest_free_descriptor(void) {
  int fd = open("/dev/null", O_RDONLY);
  CHECK(fd >= 0);
  close(fd);
  return fd;
}

TEST_OF_QUEUE(queue_without_a_descriptor_opens_none) {
  int before = lowest_free_descriptor();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  multicast_queue_wait(q, 0);
  multicast_queue_run(q, 0);
  CHECK_EQ(lowest_free_descriptor(), before);
}
