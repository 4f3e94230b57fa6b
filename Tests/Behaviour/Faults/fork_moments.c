/* Forks at each allocation and deallocation of another thread that is inside the library. */

#include "../Interface/harness.h"
#include "functions.h"

#include <unistd.h>

/* ---- An allocator that detects writes after deallocation ------------------------------------- */

typedef struct block {
  uint32_t magic;
  size_t size;
} block;

enum { HEADER = 128, ALIVE = 0x600d, DEAD = 0xdead, POISON = 0x5a, MOST = 200000 };

/* these variables have no lock, because no thread of a child would release the lock */
static block *dead[MOST];
static int dead_count;

/* The number of moments that the watched thread has yet to pass before the fork, or -1 for no fork.
 * A moment is an allocation or a deallocation. */
static int moments_to_pass = -1;
static pthread_t watched;
static bool has_come; /* whether the moment has been reached */
static gate may_fork = GATE_INIT, has_forked = GATE_INIT;

/* Waits for the fork, but with a timeout, because the fork itself waits if this thread is holding
 * one of the library's locks. */
static void be_at_a_moment(void) {
  if (moments_to_pass < 0 || !pthread_equal(pthread_self(), watched)) return;
  if (--moments_to_pass >= 0) return;
  has_come = true;
  gate_open(&may_fork);
  gate_opens_within(&has_forked, 20);
}

static void *allocate(void *context, size_t size, size_t alignment) {
  void *memory;
  CHECK(alignment <= HEADER);
  CHECK_EQ(posix_memalign(&memory, HEADER, HEADER + size), 0);
  block *b = memory;
  b->magic = ALIVE;
  b->size = size;
  be_at_a_moment();
  return (char *)memory + HEADER;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment) {
  block *b = (block *)(void *)((char *)memory - HEADER);
  CHECK_EQ(b->magic, ALIVE); /* the block has not been deallocated before */
  CHECK_EQ(b->size, size);
  b->magic = DEAD;
  memset(memory, POISON, size);
  dead[ADD(dead_count, 1) - 1] = b;
  CHECK(LOAD(dead_count) < MOST);
  be_at_a_moment();
}

static void check_dead(void) {
  for (int i = 0; i < dead_count; ++i) {
    const unsigned char *bytes = (const unsigned char *)dead[i] + HEADER;
    /* nothing has been written to the block since its deallocation */
    for (size_t j = 0; j < dead[i]->size; ++j) CHECK_EQ(bytes[j], POISON);
  }
}

/* ---- The watched thread ---------------------------------------------------------------------- */

typedef struct scene {
  const function *f; /* NULL: watch the destruction of a world with queued calls */
  world w;
  int moment;
} scene;

static void *be_watched(void *argument) {
  scene *s = argument;
  watched = pthread_self();
  moments_to_pass = s->moment;
  if (s->f != NULL) {
    CHECK_EQ(s->f->call(&s->w), 0);
    unmake_all(&s->w);
  } else {
    CHECK_EQ(multicast_invoke(s->w.m, 0, payload, sizeof payload), 4);
    world_end(&s->w);
  }
  moments_to_pass = -1;
  gate_open(&may_fork); /* opens the gate in case the moment was never reached */
  return NULL;
}

/* The watched thread does not exist in the child, but the child can use every object that this
 * thread was using. */
static void be_a_child(scene *s) {
  moments_to_pass = -1;
  use_every_function();
  if (s->f != NULL) {
    CHECK(multicast_invoke(s->w.m, 0, payload, sizeof payload) >= 0);
    CHECK_OK(multicast_lifetime_end(s->w.lifetime));
    CHECK_OK(multicast_queue_destroy(s->w.queue));
    CHECK_OK(multicast_destroy(s->w.m));
    CHECK_OK(multicast_broadcaster_destroy(s->w.broadcaster));
  }
  check_dead();
  _exit(0);
}

static void fork_at(scene *s) {
  pid_t child = begin_child();
  if (child == 0) be_a_child(s);
  gate_open(&has_forked);
  int end = end_of_child(child);
  if (end == 0) return;
  fprintf(stderr, "in the child of a fork in %s (%s), at moment %d\n",
          s->f != NULL ? s->f->name : "the end of a world", s->f != NULL ? s->f->variant : "",
          s->moment);
  CHECK_EQ(end, 0);
}

/* Forks at each moment of a call, and returns the number of moments. */
static int fork_at_each(const function *f) {
  static const gate shut = GATE_INIT;
  static scene s;
  s.f = f;
  has_come = true;
  for (s.moment = 0; has_come; ++s.moment) {
    world_begin(&s.w);
    has_come = false;
    may_fork = has_forked = shut;
    pthread_t thread = start_thread(be_watched, &s);
    gate_wait(&may_fork);
    if (has_come) fork_at(&s);
    join_thread(thread);
    if (f != NULL) world_end(&s.w);
  }
  return s.moment - 1;
}

TEST(fork_at_each_allocation_and_deallocation_of_another_thread) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = allocate;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
  int moments = fork_at_each(NULL);
  CHECK(moments > 5);
  for (int i = 0; i < function_count; ++i) moments += fork_at_each(&functions[i]);
  check_dead();
  printf("%d forks\n", moments);
}
