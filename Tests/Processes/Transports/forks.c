/* Tests that a child of fork() can destroy the broadcaster, no matter which instruction the
 * transport's thread was executing. The thread receives messages that replace a buffer, and the
 * process forks at each instruction of the library that the thread executes. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "Harness/broker.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(IS_WITHOUT_THREADS_IN_CHILDREN)

enum { TRAP_FLAG = 0x100, INSTRUCTIONS_MAX = 1 << 20 };

static struct {
  peer p;
  pthread_t thread; /* of its transport */
  int is_connected, is_stepping;
  uintptr_t begin, end; /* of the library's instructions */
  bool has_had[INSTRUCTIONS_MAX]; /* whether the process has forked at this instruction */
  int children, failures, status; /* `status` is the last failed child's wait status */
} stepping;

static void note_thread(void *context, transport_state state, int32_t code, const char *reason) {
  if (state != TRANSPORT_CONNECTED) return;
  stepping.thread = pthread_self();
  STORE(stepping.is_connected, 1);
}

static void be_a_child(void) {
  signal(SIGALRM, SIG_DFL);
  alarm(10); /* ends the child if it hangs */
  /* If the library is linked into the test, the thread may have been inside the observer. The
   * result is then MULTICAST_PENDING, which is not an error. _Exit() is called instead of _exit(),
   * because in coverage builds _exit() would write counts that may be inconsistent. */
  const multicast_status status = multicast_broadcaster_destroy(stepping.p.broadcaster);
  /* After the stepping, the parent may have destroyed the broadcaster already. */
  const bool may_be_gone = !LOAD(stepping.is_stepping);
  _Exit(status >= 0 || (may_be_gone && status == MULTICAST_ERROR_INVALID_HANDLE) ? 0 : -status);
}

static void fork_here(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) be_a_child();
  waitpid(child, &status, 0);
  ++stepping.children;
  if (status == 0) return;
  ++stepping.failures;
  stepping.status = status;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uintptr_t at = (uintptr_t)registers[REG_RIP];
  const int kept = errno;
  if (LOAD(stepping.is_stepping)) registers[REG_EFL] |= TRAP_FLAG;
  else registers[REG_EFL] &= ~TRAP_FLAG;
  if (at >= stepping.begin && at < stepping.end && !stepping.has_had[at - stepping.begin]) {
    stepping.has_had[at - stepping.begin] = true;
    fork_here();
  }
  errno = kept;
}

/* Finds the address range of the library or program that contains the function. */
static void find_instructions(uintptr_t function) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) {
    CHECK_EQ(sscanf(line, "%lx-%lx", &stepping.begin, &stepping.end), 2);
    if (function >= stepping.begin && function < stepping.end) break;
  }
  CHECK(function >= stepping.begin && function < stepping.end);
  CHECK(stepping.end - stepping.begin <= INSTRUCTIONS_MAX);
  fclose(maps);
}

static void expect_children_to_end(multicast_queue queue) {
  /* The first message arrives before the stepping begins, so that the second message must replace
   * an existing buffer. */
  static const size_t sizes[] = {1500, 200000, 100};
  static char payload[200000];
  const struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  broker b;
  peer here;
  int arrived = 0;
  memset(&stepping, 0, sizeof stepping);
  broker_start(&b, NULL);
  CHECK_EQ(sigaction(SIGTRAP, &trap, NULL), 0);
  peer_connect_reliably(&here, b.port);
  transport_options options = peer_reliable_options(&stepping.p, b.port);
  options.changed = note_thread;
  options.queue = queue;
  CHECK_OK(transport_connect(&options, &stepping.p.transport));
  EVENTUALLY(LOAD(stepping.is_connected));
  find_instructions((uintptr_t)stepping.p.transport.publish);
  CHECK_OK(multicast_broadcaster_register(stepping.p.broadcaster, "n", counter(&arrived), NULL,
                                          NULL));
  CHECK_OK(multicast_broadcaster_attach(stepping.p.broadcaster, &stepping.p.transport));
  peer_flush(&stepping.p);
  for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); ++i) {
    STORE(stepping.is_stepping, i > 0);
    if (i == 1) CHECK_EQ(pthread_kill(stepping.thread, SIGTRAP), 0);
    CHECK_OK(peer_publish(&here, "n", 1, payload, sizes[i]));
    /* The test creates one process per instruction, so it takes several seconds, or longer on a
     * busy machine. */
    for (int waited = 0; LOAD(arrived) != i + 1; ++waited) {
      CHECK(waited < 100000);
      pause_ms(1);
    }
  }
  STORE(stepping.is_stepping, 0);
  CHECK_OK(multicast_broadcaster_attach(stepping.p.broadcaster, NULL));
  CHECK_OK(multicast_broadcaster_destroy(stepping.p.broadcaster));
  CHECK(stepping.children > 100);
  CHECK_EQ(stepping.status, 0); /* a signal's number, such as SIGALRM, or -256 * the status code */
  CHECK_EQ(stepping.failures, 0);
  peer_release(&here);
  broker_delete(&b);
}

TEST(child_may_destroy_the_broadcaster_at_each_instruction) {
  expect_children_to_end((multicast_queue){0});
}

TEST(child_may_destroy_it_at_each_instruction_with_a_queue) {
  multicast_queue queue = multicast_queue_create(NULL);
  CHECK_OK(multicast_queue_start(queue));
  expect_children_to_end(queue);
  CHECK_OK(multicast_queue_destroy(queue));
}

#endif

/* ---- Inside an observer ---------------------------------------------------------------------- */

static bool is_filled(const unsigned char *payload, size_t size) {
  return payload[0] == 'x' && memcmp(payload, payload + 1, size - 1) == 0;
}

typedef struct forker {
  multicast_broadcaster broadcaster;
  int status;
} forker;

/* Forks inside an observer. The child destroys the broadcaster, and can still read the payload. */
FUNCTION(fork_inside, forker *f) {
  static unsigned char *others[100];
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    multicast_broadcaster_destroy(f->broadcaster);
    /* If the payload had been freed, these allocations would reuse its memory. */
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
      others[i] = malloc(size);
      if (others[i] != NULL) memset(others[i], 'y', size);
    }
    _exit(is_filled(payload, size) ? 0 : 1);
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  STORE(f->status, status);
}

TEST_OF_BROKER(payload_stays_in_a_child_that_destroys_the_broadcaster, NULL) {
  static unsigned char payload[3000];
  SCOPED peer here;
  peer there;
  forker f = {.status = -1};
  memset(payload, 'x', sizeof payload);
  peer_connect_reliably(&here, b->port);
  peer_connect_reliably(&there, b->port);
  f.broadcaster = there.broadcaster;
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", DELEGATE(fork_inside, &f), NULL,
                                          NULL));
  CHECK_OK(multicast_broadcaster_attach(there.broadcaster, &there.transport));
  peer_flush(&there);
  CHECK_OK(peer_publish(&here, "n", 1, payload, sizeof payload));
  EVENTUALLY(LOAD(f.status) != -1);
  CHECK_EQ(f.status, 0);
  peer_detach(&there);
}
