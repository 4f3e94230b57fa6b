/* A process forks while one of its threads removes many delegates. Each release runs exactly once
 * in the parent and once in the child. */

#include "../Interface/harness.h"

#include <unistd.h>

enum { COUNT = 12 };

/* How many times the release of each delegate has started in this process. */
static int begun[COUNT];
static int in_call; /* the delegate in whose call a thread stays, or -1 */
static gate is_in_call = GATE_INIT, may_return = GATE_INIT;

/* ---- The moments ----------------------------------------------------------------------------- */

/* The number of moments that the watched thread has yet to pass before the fork. A moment is the
 * start or end of a release, or a deallocation by the removing thread. */
static int moments_to_pass = -1; /* -1: do not fork */
static pthread_t watched;
static bool has_come, forks_itself;
static gate may_fork = GATE_INIT, has_forked = GATE_INIT;
static pid_t child_of_own = -1;

static void be_at_a_moment(void) {
  if (moments_to_pass < 0 || !pthread_equal(pthread_self(), watched)) return;
  if (--moments_to_pass >= 0) return;
  has_come = true;
  if (forks_itself) {
    child_of_own = begin_child();
    /* The child does not open the gate. No thread of the child is waiting for the gate, and a
     * thread of the parent may have been holding the gate's lock at the fork. */
    if (child_of_own != 0) gate_open(&may_return);
    return;
  }
  gate_open(&may_fork);
  gate_opens_within(&has_forked, 20); /* if this thread is holding a lock, the fork waits */
}

static void release(void *context) {
  int i = (int)(intptr_t)context;
  CHECK(i >= 0 && i < COUNT);
  ADD(begun[i], 1);
  be_at_a_moment();
  be_at_a_moment();
}

static void release_payload(const void *payload, size_t size) {
  be_at_a_moment();
}

static void *allocate(void *context, size_t size, size_t alignment) {
  void *block = NULL;
  if (alignment < sizeof block) alignment = sizeof block;
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  free(block);
  if (!forks_itself) be_at_a_moment();
}

static void delegate(void *context, uint32_t event, const void *payload, size_t size) {
  if ((int)(intptr_t)context != in_call) return;
  gate_open(&is_in_call);
  gate_wait(&may_return);
}

/* ---- The delegates to remove ----------------------------------------------------------------- */

static multicast m;
static multicast_lifetime lifetime;
static multicast_queue queue;

/* Adds delegates with and without an event mask, delegates of a lifetime, and delegates with a
 * queue. */
static void add_all(void) {
  m = multicast_create();
  lifetime = multicast_lifetime_create();
  queue = multicast_queue_create(NULL);
  for (int i = 0; i < COUNT; ++i) {
    multicast_add_options options = ADD_OPTIONS(.release = release);
    multicast_delegate d = {delegate, (void *)(intptr_t)i};
    if (i % 3 == 1) options.events = 1;
    if (i % 3 == 2) options.queue = queue;
    options.lifetime = lifetime;
    if (i % 4 == 0) options.lifetime.id = 0;
    CHECK_OK(multicast_add(m, d, &options, NULL));
    begun[i] = 0;
  }
}

static void by_remove_all(void) { CHECK(multicast_remove_all(m) >= 0); }
static void by_destroy(void) { CHECK_OK(multicast_destroy(m)); }

static void by_lifetime_end(void) {
  CHECK_OK(multicast_lifetime_end(lifetime));
  CHECK(multicast_remove_all(m) >= 0);
}

static void by_queue_destroy(void) {
  CHECK_OK(multicast_queue_destroy(queue));
  CHECK(multicast_remove_all(m) >= 0);
}

static void by_remove_many(void) {
  multicast_delegate list[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    list[i].function = delegate;
    list[i].context = (void *)(intptr_t)i;
  }
  CHECK(multicast_remove_many(m, list, COUNT) >= 0);
}

static void (*const ways[])(void) = {by_remove_all, by_destroy, by_lifetime_end, by_queue_destroy,
                                     by_remove_many};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- The two processes ----------------------------------------------------------------------- */

static void (*way)(void);

static void *invoke_there(void *unused) {
  CHECK(multicast_invoke(m, 0, "payload", 8) >= 0);
  return NULL;
}

static void *remove_there(void *moment) {
  watched = pthread_self();
  moments_to_pass = (int)(intptr_t)moment;
  way();
  moments_to_pass = -1;
  gate_open(&may_fork); /* opens the gate in case the moment was never reached */
  return NULL;
}

/* Expects that no delegates are left and that every release has run once. */
static void check_all_released(void) {
  for (int i = 0; i < COUNT; ++i) {
    if (begun[i] != 1) fprintf(stderr, "release %d\n", i);
    CHECK_EQ(begun[i], 1);
  }
}

static void be_released_later(void *count) { ++*(int *)count; }

/* Adds more delegates than there were before, and expects that no two share a slot. */
static void add_as_many(void) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released_later);
  multicast_token tokens[2 * COUNT];
  int count = 0;
  multicast_delegate d = {delegate, &count};
  for (int i = 0; i < 2 * COUNT; ++i) CHECK_OK(multicast_add(m, d, &options, &tokens[i]));
  for (int i = 0; i < 2 * COUNT; ++i) CHECK(multicast_token_is_valid(tokens[i]));
  CHECK_OK(multicast_remove_every(m, d));
  CHECK_EQ(count, 2 * COUNT);
}

static void be_a_child(void) {
  moments_to_pass = -1;
  /* Destroying the multicast removes the delegates that the parent's thread had not yet removed.
   * The other delegates were released inside fork(). */
  if (multicast_is_valid(m)) {
    add_as_many();
    CHECK_OK(multicast_destroy(m));
  }
  check_all_released();
  multicast_lifetime_end(lifetime);
  multicast_queue_destroy(queue);
  _exit(0);
}

static void check_child(pid_t child, int number, int moment) {
  int end = end_of_child(child);
  if (end != 0) fprintf(stderr, "in the child: way %d, moment %d\n", number, moment);
  CHECK_EQ(end, 0);
}

static void end_all(void) {
  check_all_released();
  if (multicast_is_valid(m)) CHECK_OK(multicast_destroy(m));
  multicast_lifetime_end(lifetime);
  multicast_queue_destroy(queue);
}

/* Forks at each moment of a removal, and returns the number of moments. */
static int fork_at_each_moment(int number, int called) {
  static const gate shut = GATE_INIT;
  int moment;
  way = ways[number];
  has_come = true;
  for (moment = 0; has_come; ++moment) {
    add_all();
    in_call = called;
    has_come = false;
    may_fork = has_forked = is_in_call = may_return = shut;
    /* the new thread is the second to invoke the multicast, and queues calls */
    pthread_t invoker = start_thread(invoke_there, NULL);
    if (called >= 0) gate_wait(&is_in_call);
    else join_thread(invoker);
    pthread_t remover = start_thread(remove_there, (void *)(intptr_t)moment);
    if (called >= 0) {
      /* While the removal is waiting for the call, it does not reach the moment, so limit this
       * wait. */
      gate_opens_within(&may_fork, 20);
      has_come = has_come && moment < 2 * COUNT;
    } else {
      gate_wait(&may_fork);
    }
    if (has_come || called >= 0) {
      pid_t child = begin_child();
      if (child == 0) be_a_child();
      gate_open(&has_forked);
      check_child(child, number, moment);
    }
    gate_open(&may_return);
    gate_open(&has_forked);
    join_thread(remover);
    if (called >= 0) join_thread(invoker);
    end_all();
  }
  return moment - 1;
}

static void use_the_allocator(void) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = allocate;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
}

TEST(fork_while_others_remove_many_releases_each_in_both) {
  int moments = 0;
  use_the_allocator();
  for (int number = 0; number < WAYS; ++number) {
    int found = fork_at_each_moment(number, -1);
    CHECK(found >= 2 * COUNT);
    moments += found;
  }
  printf("%d forks\n", moments);
}

TEST(fork_while_others_wait_for_one_of_many_releases_each_once) {
  int moments = 0;
  use_the_allocator();
  for (int number = 0; number < WAYS; ++number) moments += fork_at_each_moment(number, 4);
  printf("%d forks\n", moments);
}

/* Removes the delegates and forks on the same thread, once inside each release. */
static void fork_in_each_release(int called) {
  static const gate shut = GATE_INIT;
  forks_itself = true;
  for (int number = 0; number < WAYS; ++number) {
    for (int moment = 0; moment < 2 * COUNT; ++moment) {
      pthread_t invoker;
      add_all();
      in_call = called;
      is_in_call = may_return = shut;
      if (called >= 0) {
        invoker = start_thread(invoke_there, NULL);
        gate_wait(&is_in_call);
      }
      /* The delegate whose call is running is released last. If the fork is to happen inside this
       * release, let the call return now. */
      if (called >= 0 && moment >= 2 * (COUNT / 3)) gate_open(&may_return);
      child_of_own = -1;
      watched = pthread_self();
      moments_to_pass = moment;
      ways[number]();
      moments_to_pass = -1;
      if (child_of_own == 0) be_a_child();
      if (called < 0 || moment < 2) CHECK(child_of_own > 0);
      if (child_of_own > 0) check_child(child_of_own, number, moment);
      gate_open(&may_return);
      if (called >= 0) join_thread(invoker);
      end_all();
    }
  }
}

/* The removal releases the payload of the cancelled calls before it releases the delegates. */
TEST(fork_in_release_of_payload_of_a_removal_releases_once) {
  forks_itself = true;
  for (int number = 0; number < WAYS; ++number) {
    add_all();
    in_call = -1;
    CHECK_EQ(multicast_invoke_with(m, &INVOCATION(.payload = "payload", .size = 8,
                                                  .release = release_payload), NULL), COUNT);
    child_of_own = -1;
    watched = pthread_self();
    moments_to_pass = 0;
    ways[number]();
    moments_to_pass = -1;
    if (child_of_own == 0) be_a_child();
    CHECK(child_of_own > 0);
    check_child(child_of_own, number, 0);
    end_all();
  }
}

TEST(fork_in_release_of_one_of_many_releases_each_in_both) {
  fork_in_each_release(-1);
}

TEST(fork_in_release_of_one_while_another_runs_releases_once) {
  fork_in_each_release(4);
}
