/* Checks a publisher's ring after each instruction that the publisher executes. The ring must be
 * consistent, because the publisher may be killed at any time. */

#include "strangers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* The ring has room for eight entries. All bytes of the Nth payload are N. */
enum { RING = 1 << 16, ENTRY = 8000, PAYLOAD = ENTRY - sizeof(entry) - 4, NUMBERS = 12 };

static void publish(peer *p, int number) {
  static char payload[PAYLOAD];
  memset(payload, number, sizeof payload);
  CHECK_OK(peer_publish(p, "mine", 1, payload, sizeof payload));
}

/* The publishing process. When the ring is full, the process stops, so that the test can trace
 * it. */
static void publish_numbers(int port, int *is_there) {
  peer p;
  int number = 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  peer_connect_with(&p, port, &OPTIONS(.ring_bytes = RING,
                                       .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  STORE(*is_there, 1);
  /* Publish until the other peer has announced the name. */
  EVENTUALLY((publish(&p, number), peer_stats(&p).sent > 0));
  while (number < RING / ENTRY) publish(&p, ++number);
  if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(1);
  raise(SIGSTOP);
  while (number < NUMBERS) publish(&p, ++number);
  raise(SIGSTOP);
  peer_release(&p);
  _exit(0);
}

static void check_entry(const stranger *s, uint64_t position) {
  const unsigned char *at = memory_at(&s->its, position), *payload = at + ENTRY - PAYLOAD;
  entry r;
  memcpy(&r, at, sizeof r);
  CHECK_EQ(r.size, ENTRY);
  CHECK_EQ(r.payload_size, PAYLOAD);
  CHECK_EQ(payload[0], position / ENTRY + 1);
  CHECK_EQ(memcmp(payload, payload + 1, PAYLOAD - 1), 0);
}

/* All entries that have not been counted as dropped must be intact, because a reader would read
 * them if the publisher were killed at this moment. */
static void check_ring(const stranger *s) {
  const board *b = s->its.board;
  const uint64_t begin = b->counted & ~(uint64_t)COUNT_BIT;
  CHECK_EQ(b->slots[s->place].dropped[b->counted & COUNT_BIT], begin / ENTRY);
  CHECK(b->oldest >= begin);
  for (uint64_t at = begin; at < b->head; at += ENTRY) check_entry(s, at);
}

TEST(ring_is_right_at_each_instruction_of_a_publication) {
  int *is_there = mmap(NULL, sizeof *is_there, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0), status, steps = 0, stops = 0;
  broker b;
  stranger s;
  CHECK(is_there != MAP_FAILED);
  broker_prepare(&b, NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) publish_numbers(b.port, is_there);
  EVENTUALLY(LOAD(*is_there) == 1);
  stranger_connect(&s, &b);
  CHECK_EQ(s.its.board->head, 0);
  stranger_greet(&s);
  stranger_say(&s, MESSAGE_WANT, 0, "mine");
  while (stops < 2) {
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSTOPPED(status));
    stops += WSTOPSIG(status) == SIGSTOP;
    check_ring(&s);
    ++steps;
    CHECK_EQ(ptrace(stops < 2 ? PTRACE_SINGLESTEP : PTRACE_DETACH, child, 0, 0), 0);
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK(steps > 2000);
  check_ring(&s);
  CHECK_EQ(s.its.board->head, (uint64_t)NUMBERS * ENTRY);
  stranger_end(&s);
  broker_delete(&b);
}
