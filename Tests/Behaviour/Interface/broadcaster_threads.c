/* Several threads use broadcasters. A lookup takes no lock. */

#include "allocators.h"
#include "broadcasters.h"

/* ---- Locks ----------------------------------------------------------------------------------- */

/* The library calls this allocator while it is holding the lock under which names are added. While
 * `lookups_to_make` is positive, the allocator looks up a name on another thread. */
static int lookups_to_make;
static void *(*lookup)(void *);
static uint64_t id_to_find;

THREAD(look_up_there, void *unused) {
  CHECK_EQ(notify(shared, NAME), 1);
  CHECK_EQ(notify(shared, "Unknown"), 0);
  CHECK_EQ(find(shared, NAME).id, id_to_find);
}

THREAD(find_there, void *unused) {
  CHECK_EQ(find(shared, NAME).id, id_to_find);
}

static void *allocate_and_look_up(void *context, size_t size, size_t alignment) {
  if (lookups_to_make > 0) {
    int left = lookups_to_make - 1;
    lookups_to_make = 0;
    on_another_thread(lookup, NULL);
    lookups_to_make = left;
  }
  return allocate_aligned(size, alignment);
}

static void look_up_in_every_allocation(void *(*body)(void *)) {
  use_allocator(allocate_and_look_up, NULL);
  shared = create();
  observe(shared, NAME, counter(&calls));
  id_to_find = find(shared, NAME).id;
  CHECK_EQ(notify(shared, NAME), 1);
  on_another_thread(look_up_there, NULL); /* the next thread reuses this thread's record */
  lookup = body;
  lookups_to_make = 200;
  for (int i = 0; i < 2000; ++i) CHECK(find(shared, numbered(NAME, i)).id != 0);
  CHECK(lookups_to_make < 200);
  lookups_to_make = 0;
}

TEST(broadcaster_lookups_take_no_lock) { look_up_in_every_allocation(look_up_there); }

TEST(broadcaster_multicast_takes_no_lock_on_a_new_thread) {
  look_up_in_every_allocation(find_there);
}

/* ---- Several threads use the same names ------------------------------------------------------ */

THREAD(destroy_the_multicast, void *unused) {
  while (!LOAD(is_over)) {
    multicast_status status = multicast_destroy(find(shared, NAME));
    if (status != MULTICAST_ERROR_INVALID_HANDLE) CHECK_OK(status);
  }
}

TEST(broadcaster_registers_while_others_destroy_multicast_of_name) {
  enum { ROUNDS = 20000 };
  observer o = {0, 0};
  shared = create();
  pthread_t thread = start_thread(destroy_the_multicast, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    observe_with(shared, NAME, observing(&o), &ADD_OPTIONS(.release = release_observer));
    CHECK(notify(shared, NAME) >= 0);
  }
  STORE(is_over, true);
  join_thread(thread);
  CHECK_OK(multicast_broadcaster_destroy(shared));
  CHECK_EQ(o.releases, ROUNDS);
}

/* ---- Lookups while broadcasters are created and destroyed ------------------------------------ */

static uint64_t passing_handle;

static char long_names[SHARED_NAMES][LONGEST + 1]; /* long names make lookups slow */

THREAD(look_up_what_comes_and_goes, void *unused) {
  while (!LOAD(is_over)) {
    multicast_broadcaster b = {LOAD(passing_handle)};
    for (int i = 0; i < SHARED_NAMES; ++i) {
      int64_t result = notify(b, long_names[i]);
      if (result < 0) CHECK_ERROR(result, INVALID_HANDLE);
      CHECK(result <= 1);
      if (multicast_broadcaster_multicast(b, long_names[i]).id == 0) break;
    }
  }
}

TEST(broadcaster_destroyed_while_others_look_up) {
  enum { ROUNDS = 1500, LOOKERS = 3 };
  pthread_t threads[LOOKERS];
  for (int i = 0; i < SHARED_NAMES; ++i) {
    memset(long_names[i], 'n', LONGEST);
    long_names[i][LONGEST - 1] = (char)('a' + i);
  }
  use_test_allocator(); /* this allocator overwrites freed memory */
  CHECK_OK(multicast_broadcaster_destroy(create()));
  for (int i = 0; i < LOOKERS; ++i) threads[i] = start_thread(look_up_what_comes_and_goes, NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    multicast_broadcaster b = create();
    for (int i = 0; i < SHARED_NAMES; ++i) {
      observe(b, long_names[i], counter(&calls));
      if (i == 0) STORE(passing_handle, b.id);
    }
    CHECK_OK(multicast_broadcaster_destroy(b));
  }
  STORE(is_over, true);
  for (int i = 0; i < LOOKERS; ++i) join_thread(threads[i]);
}

typedef struct worker {
  unsigned seed;
  observer own;
  int registered;
  uint64_t padding[8]; /* keeps the workers in different cache lines */
} worker;

THREAD(register_until_it_ends, worker *w) {
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_status status = MULTICAST_OK;
  for (int i = 0; status == MULTICAST_OK; ++i) { /* a new name each time makes the table grow */
    ++w->registered;
    status = multicast_broadcaster_register(shared, numbered(NAME, (int)w->seed + 2 * i),
                                            observing(&w->own), &options, NULL);
  }
  CHECK_ERROR(status, INVALID_HANDLE);
}

TEST(broadcaster_destroyed_while_others_register_releases_once) {
  enum { ROUNDS = 100 };
  use_test_allocator();
  for (int round = 0; round < ROUNDS; ++round) {
    worker workers[2];
    pthread_t threads[2];
    memset(workers, 0, sizeof workers);
    shared = create();
    for (int i = 0; i < 2; ++i) {
      workers[i].seed = (unsigned)i;
      threads[i] = start_thread(register_until_it_ends, &workers[i]);
    }
    while (notify(shared, numbered(NAME, round % 20)) == 0) pause_ms(0);
    CHECK_OK(multicast_broadcaster_destroy(shared));
    for (int i = 0; i < 2; ++i) {
      join_thread(threads[i]);
      CHECK_EQ(workers[i].own.releases, workers[i].registered);
    }
  }
}

static gate all_ready = GATE_INIT;

/* ---- Lookups while names are added ----------------------------------------------------------- */

THREAD(look_up_while_growing, unsigned *argument) {
  unsigned seed = *argument;
  int count, i;
  while ((count = LOAD(growing_count)) < GROWING) {
    if (count == 0) continue;
    i = (int)(next(&seed) % (unsigned)count);
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
    CHECK_EQ(notify(shared, numbered(NAME, i)), 1);
    CHECK_EQ(notify(shared, numbered("Unknown", i)), 0);
    i = count - 1; /* the newest name */
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
  }
}

TEST(broadcaster_lookups_while_the_names_grow) {
  unsigned seeds[2] = {1, 2};
  pthread_t threads[2];
  shared = create();
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(look_up_while_growing, &seeds[i]);
  for (int i = 0; i < GROWING; ++i) {
    observe(shared, numbered(NAME, i), counter(&calls));
    growing_ids[i] = find(shared, numbered(NAME, i)).id;
    STORE(growing_count, i + 1);
  }
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
  for (int i = 0; i < GROWING; ++i) {
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
  }
}

static uint64_t found_ids[4][2000];

THREAD(find_new_names, uint64_t *ids) {
  gate_wait(&all_ready);
  for (int i = 0; i < 2000; ++i) ids[i] = find(shared, numbered(NAME, i)).id;
}

TEST(broadcaster_multicast_is_the_same_for_threads_at_once) {
  pthread_t threads[4];
  shared = create();
  for (int k = 0; k < 4; ++k) threads[k] = start_thread(find_new_names, found_ids[k]);
  gate_open(&all_ready);
  for (int k = 0; k < 4; ++k) join_thread(threads[k]);
  for (int k = 1; k < 4; ++k) {
    for (int i = 0; i < 2000; ++i) CHECK_EQ(found_ids[k][i], found_ids[0][i]);
  }
}
