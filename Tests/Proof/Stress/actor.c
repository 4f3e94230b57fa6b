#define _GNU_SOURCE
#include "actor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomics.h"
#include "borrowed.h"
#include "failure.h"

const char of_a_queue[] = "of a queue";

static actor actors[ACTOR_LIMIT];
static __thread actor *current;
static uint64_t last_id, common_seed;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Runs when a thread ends, perhaps inside a call. Leaves the thread's borrowed contexts to other
 * threads, which remove the registrations of those contexts. */
static void thread_ends(void *own) {
  actor *a = own;
  current = NULL;
  borrowed_leave_behind(&a->borrowed);
  STORE(a->doing_count, 0);
  __atomic_store_n(&a->id, 0, __ATOMIC_RELEASE); /* pairs with the acquire of the next owner */
}

static void make_key(void) { pthread_key_create(&key, thread_ends); }

void actor_set_seed(uint64_t seed) { common_seed = seed; }

static pid_t process;

__attribute__((constructor)) static void note_process(void) { process = getpid(); }

bool is_in_child(void) { return getpid() != process; }

static uint64_t mixed(uint64_t x) { /* splitmix64 */
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

void actor_start(uint64_t seed, const char *kind) {
  uint64_t id = ADD(last_id, 1);
  pthread_once(&once, make_key);
  for (int i = 0; i < ACTOR_LIMIT; ++i) {
    uint64_t unused = 0;
    actor *a = &actors[i];
    if (LOAD(a->id) != 0 || !__atomic_compare_exchange_n(&a->id, &unused, id, false,
                                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    a->random = mixed(seed);
    STORE(a->kind, kind);
    a->invocations = 0;
    a->order = NULL;
    a->calls = a->weak_calls = a->releases = a->budget = 0;
    a->is_plain = false;
    a->borrowed = NULL;
    current = a;
    pthread_setspecific(key, a);
    return;
  }
  failed(__FILE__, __LINE__, "an actor is free", "more than %d threads", ACTOR_LIMIT);
}

actor *actor_current(void) {
  if (current == NULL) actor_start(common_seed ^ LOAD(last_id), of_a_queue);
  return current;
}

uint64_t random_number(void) {
  actor *a = actor_current();
  a->random += 0x9E3779B97F4A7C15u;
  return mixed(a->random);
}

uint32_t random_below(uint32_t limit) { return (uint32_t)((random_number() >> 32) * limit >> 32); }

bool one_in(uint32_t times) { return random_below(times) == 0; }

void doing(const char *what) {
  actor *a = actor_current();
  uint32_t count = LOAD(a->doing_count);
  if (count < DOING_LIMIT) STORE(a->doing[count], what);
  STORE(a->doing_count, count + 1);
  STORE(a->progress, LOAD(a->progress) + 1);
}

void doing_end(void) {
  actor *a = actor_current();
  STORE(a->doing_count, LOAD(a->doing_count) - 1);
  STORE(a->progress, LOAD(a->progress) + 1);
}

void doing_more(void) {
  actor *a = actor_current();
  STORE(a->progress, LOAD(a->progress) + 1);
}

static void print(FILE *out, actor *a) {
  uint32_t i, count = LOAD(a->doing_count);
  fprintf(out, "  thread %llu (%s):", (unsigned long long)LOAD(a->id), LOAD(a->kind));
  if (count == 0) fprintf(out, " nothing");
  for (i = 0; i < count && i < DOING_LIMIT; ++i) {
    fprintf(out, "%s %s", i == 0 ? "" : " >", LOAD(a->doing[i]));
  }
  fprintf(out, "\n");
}

void actor_print_current(void) {
  if (current != NULL) print(stderr, current);
}

void actors_print(FILE *out) {
  for (int i = 0; i < ACTOR_LIMIT; ++i) {
    if (LOAD(actors[i].id) != 0) print(out, &actors[i]);
  }
}

int actor_count(const char *kind) {
  int count = 0;
  for (int i = 0; i < ACTOR_LIMIT; ++i) {
    /* Acquire: pairs with the release in thread_ends. */
    bool is_there = __atomic_load_n(&actors[i].id, __ATOMIC_ACQUIRE) != 0;
    count += is_there && LOAD(actors[i].kind) == kind;
  }
  return count;
}

int actor_that_hangs(progress *known, int limit) {
  for (int i = 0; i < ACTOR_LIMIT; ++i) {
    uint64_t id = LOAD(actors[i].id), count = LOAD(actors[i].progress);
    bool is_same = id != 0 && LOAD(actors[i].doing_count) > 0 && id == known->id[i] &&
                   count == known->count[i];
    known->id[i] = id;
    known->count[i] = count;
    known->idle_for[i] = is_same ? known->idle_for[i] + 1 : 0;
    if (known->idle_for[i] >= limit) return i;
  }
  return -1;
}
