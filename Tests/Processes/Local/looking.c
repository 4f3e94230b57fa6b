/* Tests that a transport's thread polls for some time before it sleeps. One successful round is
 * enough, because other rounds may fail if the machine is busy. */

#include "groups.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 50, COUNT = 200 };

/* Returns how many times the calling thread has slept. Yielding the processor does not count. */
static long sleeps_now(void) {
  struct rusage used;
  CHECK_EQ(getrusage(RUSAGE_THREAD, &used), 0);
  return used.ru_nvcsw;
}

/* A peer that receives notifications, and may forward them to the next peer. */
typedef struct stop {
  peer p;
  const char *to; /* NULL if it does not forward */
  int arrived;
  long sleeps_before, sleeps;
} stop;

/* Moves the calling thread to the first processor, so that both transports' threads share it. */
static void stay_on_first_processor(void) {
  cpu_set_t all, first;
  int processor = 0;
  CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  while (!CPU_ISSET(processor, &all)) ++processor;
  CPU_ZERO(&first);
  CPU_SET(processor, &first);
  CHECK_EQ(sched_setaffinity(0, sizeof first, &first), 0);
}

FUNCTION(go_on, stop *s) {
  const int count = LOAD(s->arrived) + 1;
  if (s->to != NULL && count == 1) stay_on_first_processor();
  if (count % COUNT == 1) s->sleeps_before = sleeps_now();
  if (count % COUNT == 0) s->sleeps = sleeps_now() - s->sleeps_before;
  STORE(s->arrived, count);
  if (s->to != NULL && (count % COUNT != 0 || s->to[0] == 'a'))
    CHECK_OK(peer_publish(&s->p, s->to, 1, NULL, 0));
}

static void connect_stop(stop *s, const broker *b, const char *name, const char *to) {
  peer_connect_to(&s->p, b);
  s->to = to;
  peer_observe(&s->p, name, DELEGATE(go_on, s));
}

TEST_OF_BROKER(answer_comes_before_the_thread_sleeps, NULL) {
  static stop here, there;
  int round = 0;
  connect_stop(&here, b, "a", "b");
  connect_stop(&there, b, "b", "a");
  peer_meet(&here.p, 1);
  do {
    CHECK(++round <= ROUNDS);
    CHECK_OK(peer_publish(&here.p, "b", 1, NULL, 0));
    EVENTUALLY(LOAD(here.arrived) == round * COUNT);
  } while (here.sleeps > COUNT / 4);
  peer_release(&here.p);
  peer_release(&there.p);
}

TEST_OF_BROKER(thread_sleeps_where_nothing_comes_soon, NULL) {
  static stop there;
  SCOPED peer here;
  int round = 0, i;
  peer_connect_to(&here, b);
  connect_stop(&there, b, "b", NULL);
  peer_meet(&here, 1);
  do {
    CHECK(++round <= ROUNDS);
    for (i = 0; i < COUNT; ++i) {
      CHECK_OK(peer_publish(&here, "b", 1, NULL, 0));
      usleep(2000 * (unsigned)round); /* on a busy machine several may arrive together */
    }
    EVENTUALLY(LOAD(there.arrived) == round * COUNT);
  } while (there.sleeps < COUNT / 2);
  peer_release(&here);
  peer_release(&there.p);
}
