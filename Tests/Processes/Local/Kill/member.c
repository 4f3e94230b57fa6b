/* The code that each process of the group runs. Publishers publish numbers, and subscribers check
 * the arriving numbers. All processes check the reports about other processes. */

#include "world.h"

#include <multicast_local.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* If a ring is full, each publication of SIZE_MAX_SENT bytes drops an older publication. */
enum { SIZE_MAX_SENT = 4200, BURST_MAX = 64, SHORT_LIFE = 40, BEFORE_STOP = 100 };

static int here; /* the index of this process's place */
static place *me;
static multicast_transport transport;
static uint32_t random_state;

static uint32_t random_below(uint32_t bound) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % bound;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

typedef struct numbered {
  int place;
  uint32_t life;
  uint64_t number;
} numbered;

static life *life_of(int p, uint32_t number) {
  return &the_world->places[p].lives[number % LIVES_KEPT];
}

static void publish_number(multicast_broadcaster b, life *l) {
  char payload[sizeof(numbered) + SIZE_MAX_SENT];
  const numbered n = {here, me->number, l->begun};
  const size_t more = me->task == STOP_IN_PUBLISH ? SIZE_MAX_SENT : random_below(SIZE_MAX_SENT);
  const size_t size = sizeof n + more;
  int64_t result;
  memcpy(payload, &n, sizeof n);
  memset(payload + sizeof n, (int)n.number, size - sizeof n);
  STORE(l->begun, n.number + 1);
  if (me->task == STOP_IN_PUBLISH && n.number == BEFORE_STOP) raise(SIGUSR1);
  while ((result = multicast_broadcaster_notify(b, "numbers", 1, payload, size)) ==
         MULTICAST_ERROR_QUEUE_FULL) {
    ++me->refusals;
    pause_us(50);
  }
  if (result < 0) fail("publisher %d: %lld", here, (long long)result);
  STORE(l->returned, n.number + 1);
}

static bool has_to_end(uint64_t count) {
  return LOAD(the_world->has_to_end) || (me->task == LEAVE_SOON && count >= SHORT_LIFE);
}

static void publish_numbers(multicast_broadcaster b) {
  life *l = life_of(here, me->number);
  while (!has_to_end(l->begun)) {
    for (uint32_t left = 1 + random_below(BURST_MAX); left > 0 && !has_to_end(l->begun); --left)
      publish_number(b, l);
    if (me->task != STOP_IN_PUBLISH) pause_us(random_below(2000));
  }
}

/* ---- Arriving numbers ------------------------------------------------------------------------ */

/* Counts the numbers that have arrived from one other process. Only the transport's thread uses
 * this struct. */
typedef struct account {
  uint32_t life;
  bool is_here; /* the process has joined, and its end has not been reported */
  uint64_t first, next, count;
} account;
static account accounts[PLACES][LIVES_KEPT];

/* For each place, these arrays contain the publisher that existed when this process's flush
 * returned, and the number of publications that this publisher had begun. All publications that
 * began later must arrive. */
static uint32_t life_then[PLACES];
static uint64_t begun_then[PLACES];

static account *account_of(int p, uint32_t number) { return &accounts[p][number % LIVES_KEPT]; }

/* Called for each number. When the subscriber SLOW receives the first number of the publisher
 * DROPS, waits until that publisher has been killed. While SLOW waits, it does not read, so the
 * publisher's ring fills up, and the publisher is killed while it drops an entry. */
static void wait_for_kill(const numbered *n) {
  const place *one = &the_world->places[DROPS];
  if (here != SLOW || n->place != DROPS || n->number > 0 || LOAD(one->number) != n->life ||
      one->task != STOP_IN_PUBLISH)
    return;
  while (LOAD(life_of(DROPS, n->life)->killed_at) == 0 && !LOAD(the_world->has_to_end))
    pause_us(100);
  pause_us(random_below(2000));
}

static void take(void *context, uint32_t event, const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  numbered n;
  account *a;
  (void)context;
  if (event != 1 || size < sizeof n) fail("subscriber %d: not a number", here);
  memcpy(&n, payload, sizeof n);
  if (n.place < 0 || n.place >= PUBLISHERS) fail("subscriber %d: of no publisher", here);
  for (size_t i = sizeof n; i < size; ++i) {
    if (bytes[i] != (unsigned char)n.number) fail("subscriber %d: a torn payload", here);
  }
  a = account_of(n.place, n.life);
  if (!a->is_here || a->life != n.life)
    fail("subscriber %d: %llu of %d.%u, which is not here", here, (unsigned long long)n.number,
         n.place, n.life);
  if (a->count == 0) {
    a->first = n.number;
  } else if (n.number < a->next || (n.number > a->next && n.place != DROPS)) {
    fail("subscriber %d: %llu of %d.%u, not %llu", here, (unsigned long long)n.number, n.place,
         n.life, (unsigned long long)a->next);
  }
  a->next = n.number + 1;
  ++a->count;
  STORE(me->arrived, me->arrived + 1);
  wait_for_kill(&n);
  if (here == SLOW && n.place == DROPS && n.number % 32 == 0) pause_us(300);
}

/* Returns the number of overwritten notifications in the library's statistics. */
static uint64_t overwritten(void) {
  multicast_local_stats stats = multicast_local_stats_default();
  if (multicast_local_get_stats(&transport, &stats) != MULTICAST_OK) fail("%d: statistics", here);
  if (stats.received != stats.delivered) fail("%d: received is not delivered", here);
  return stats.overwritten;
}

/* Compares the number of missing notifications with the library's count of losses. The library
 * keeps a single count for all publishers that have occupied the place DROPS. These publishers may
 * overlap and end in any order, so the numbers are compared only after the last of them has ended.
 * If a publisher began to publish before it knew this process, the number of its missing
 * notifications is unknown. */
static void check_lost(const account *a, bool is_exact) {
  static uint64_t before, missing;
  static bool is_known = true;
  const uint64_t now = overwritten();
  missing += a->next - a->count;
  is_known = is_known && is_exact;
  STORE(me->lost, now);
  if (me->here[DROPS] > 1) return;
  if (is_known && now - before != missing)
    fail("subscriber %d: %llu up to %d.%u are missing, %llu are counted", here,
         (unsigned long long)missing, DROPS, a->life, (unsigned long long)(now - before));
  before = now;
  missing = 0;
  is_known = true;
}

/* The lock prevents checks while the broadcaster is being destroyed, because notifications may be
 * missing during that time. */
static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
static bool is_leaving;

static void begin_leaving(void) {
  pthread_mutex_lock(&checking);
  is_leaving = true;
  pthread_mutex_unlock(&checking);
}

/* Called when a publisher has ended. Each notification must have arrived if the publisher's call to
 * `publish` had returned. The publisher's last notification may have arrived even if that call had
 * not returned. */
static void check_all_arrived(int p, const account *a) {
  const life *l = life_of(p, a->life);
  const uint64_t begun = LOAD(l->begun), returned = LOAD(l->returned);
  const bool is_later = a->life > life_then[p], was_here = a->life == life_then[p];
  const bool is_bound = LOAD(me->is_settled) && (is_later || was_here);
  const uint64_t bound = is_later ? 0 : begun_then[p];
  if (a->count > 0 && (a->next < returned || a->next > begun))
    fail("subscriber %d: %d.%u published %llu, began %llu, the last one here is %llu", here, p,
         a->life, (unsigned long long)returned, (unsigned long long)begun,
         (unsigned long long)a->next - 1);
  if (is_bound && returned > bound && (a->count == 0 || (a->first > bound && p != DROPS)))
    fail("subscriber %d: the first one of %d.%u is %llu, not %llu", here, p, a->life,
         (unsigned long long)a->first, (unsigned long long)bound);
  if (p == DROPS) check_lost(a, is_bound && is_later);
}

/* ---- Reports about other processes ----------------------------------------------------------- */

static void note_delay(uint64_t killed_at) {
  const unsigned index = __atomic_fetch_add(&the_world->delays, 1, __ATOMIC_SEQ_CST);
  if (index < DELAYS_MAX) the_world->delay_ms[index] = (float)(time_now() - killed_at) / 1e6f;
}

/* Stores the number of a process in its place unless a higher number is already stored, because the
 * ends of successive processes of a place may be reported in any order. */
static void note_life(uint32_t *last, uint32_t number) {
  if (number > *last) STORE(*last, number);
}

static void be_told_of(int p, uint32_t number, multicast_local_state state) {
  account *a = account_of(p, number);
  if (state == MULTICAST_LOCAL_JOINED) {
    if (a->is_here || a->life == number) fail("%d: %d.%u has joined twice", here, p, number);
    *a = (account){.life = number, .is_here = true};
    STORE(me->here[p], me->here[p] + 1);
    note_life(&me->met[p], number);
  } else if (state == MULTICAST_LOCAL_GONE) {
    const uint64_t killed_at = LOAD(life_of(p, number)->killed_at);
    if (!a->is_here || a->life != number) fail("%d: %d.%u has gone before", here, p, number);
    if (killed_at != 0) note_delay(killed_at);
    pthread_mutex_lock(&checking);
    if (here >= PUBLISHERS && p < PUBLISHERS && !is_leaving) check_all_arrived(p, a);
    pthread_mutex_unlock(&checking);
    a->is_here = false;
    note_life(&me->gone[p], number);
    STORE(me->here[p], me->here[p] - 1);
  } else if (state != MULTICAST_LOCAL_LOST || p != DROPS) {
    fail("%d: %d.%u: state %u", here, p, number, state);
  }
}

static void changed(void *context, multicast_local_state state, int32_t pid, const char *text) {
  int p;
  uint32_t number;
  (void)context, (void)pid;
  /* A killed or traced process may delay a process that joins, so the first attempts may fail. */
  if (state == MULTICAST_LOCAL_CONNECTED || state == MULTICAST_LOCAL_REFUSED) return;
  if (sscanf(text, "member %d.%u", &p, &number) != 2 || p < 0 || p >= PLACES)
    fail("%d: told of %s", here, text);
  else
    be_told_of(p, number, state);
}

/* ---- A life ---------------------------------------------------------------------------------- */

static bool has_left;

static void note_release(void *context) {
  (void)context;
  STORE(has_left, true);
}

static multicast_local_options options_of(multicast_broadcaster b, const char *name) {
  static const multicast_overflow policies[] = {
      MULTICAST_OVERFLOW_REFUSE, MULTICAST_OVERFLOW_BLOCK, MULTICAST_OVERFLOW_DROP_OLDEST};
  multicast_local_options options = multicast_local_options_default();
  options.broadcaster = b;
  options.group = "kill";
  options.directory = directory;
  options.name = name;
  options.ring_bytes = 1 << 16;
  options.block_ns = MULTICAST_FOREVER;
  options.changed = changed;
  options.release = note_release;
  if (here < PUBLISHERS) options.overflow = policies[here];
  return options;
}

static void settle(void) {
  if (multicast_local_flush(&transport, MULTICAST_FOREVER) != MULTICAST_OK) fail("%d: flush", here);
  for (int p = 0; p < PUBLISHERS; ++p) {
    life_then[p] = LOAD(the_world->places[p].number);
    begun_then[p] = LOAD(life_of(p, life_then[p])->begun);
  }
  STORE(me->is_settled, true);
}

void live(int place) {
  const multicast_broadcaster b = multicast_broadcaster_create(NULL);
  const multicast_delegate d = {take, NULL};
  char name[32];
  multicast_local_options options;
  here = place;
  me = &the_world->places[place];
  random_state = me->number * 7919u + (uint32_t)place;
  snprintf(name, sizeof name, "member %d.%u", place, me->number);
  options = options_of(b, name);
  if (multicast_local_connect(&options, &transport) != MULTICAST_OK ||
      multicast_broadcaster_attach(b, &transport) != MULTICAST_OK)
    fail("%d: connect", place);
  if (place >= PUBLISHERS &&
      multicast_broadcaster_register(b, "numbers", d, NULL, NULL) != MULTICAST_OK)
    fail("%d: register", place);
  settle();
  if (place < PUBLISHERS) publish_numbers(b);
  while (!has_to_end(LOAD(me->arrived))) pause_us(1000);
  begin_leaving();
  if (multicast_broadcaster_destroy(b) != MULTICAST_OK) fail("%d: destroy", place);
  /* multicast_broadcaster_destroy() does not wait for the transport's thread if that thread is
   * calling one of the program's functions. If this process exited before the transport's thread
   * ended, the process's socket file would remain. */
  while (!LOAD(has_left)) pause_us(1000);
  _exit(0);
}
