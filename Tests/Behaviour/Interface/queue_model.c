/* Performs random operations on a queue and compares the results with a model, which is an
 * array. */

#include "harness.h"

enum { PLAYERS = 7, LATEST_FROM = 5, WAITING = 200 };

/* The model, with the oldest call first. */
static struct {
  struct { int player, number; } waiting[WAITING];
  int count, capacity;
  bool drops;
  multicast_queue_stats stats;
} model;

static struct { int player, number; } made[WAITING * 4];
static int made_count;
static unsigned seed = 1;

static unsigned any(unsigned below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static void model_erase(int place) {
  memmove(&model.waiting[place], &model.waiting[place + 1],
          (size_t)(model.count - place - 1) * sizeof model.waiting[0]);
  --model.count;
}

static int64_t model_queue(int player, int number) {
  if (player >= LATEST_FROM) {
    for (int i = 0; i < model.count; ++i) {
      if (model.waiting[i].player != player) continue;
      model.waiting[i].number = number;
      ++model.stats.queued;
      ++model.stats.coalesced;
      return 1;
    }
  }
  if (model.count == model.capacity) {
    if (!model.drops) {
      ++model.stats.refused;
      return 0;
    }
    model_erase(0);
    ++model.stats.dropped;
  }
  model.waiting[model.count].player = player;
  model.waiting[model.count++].number = number;
  ++model.stats.queued;
  if (model.stats.highest < (uint64_t)model.count) model.stats.highest = (uint64_t)model.count;
  return 1;
}

static void model_retract(int player) {
  for (int i = model.count - 1; i >= 0; --i) {
    if (model.waiting[i].player != player) continue;
    model_erase(i);
    ++model.stats.cancelled;
  }
}

/* Returns the size of a number's payload, between 4 and 100 bytes. The payload begins with the
 * number, and its other bytes are derived from the number. */
static size_t size_of_number(int number) { return 4 + (size_t)(number * 7 % 97); }

static void note_made(void *context, uint32_t event, const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  int number;
  memcpy(&number, payload, sizeof number);
  CHECK_EQ(size, size_of_number(number));
  for (size_t i = 4; i < size; ++i) CHECK_EQ(bytes[i], (unsigned char)((size_t)number + i));
  made[made_count].player = (int)(intptr_t)context;
  made[made_count++].number = number;
}

typedef struct player {
  multicast target;
  multicast_token token;
  multicast_lifetime lifetime;
} player;

static void seat(player *p, int which, multicast_queue q) {
  multicast_add_options options = ADD_OPTIONS(.queue = q);
  multicast_delegate d = {note_made, (void *)(intptr_t)which};
  options.flags = which >= LATEST_FROM ? MULTICAST_LATEST : 0;
  p->lifetime = multicast_lifetime_create();
  options.lifetime = p->lifetime;
  p->token = add_with(p->target, d, &options);
}

static void unseat(player *p) {
  switch (any(4)) {
    case 0: CHECK_OK(multicast_token_remove(p->token)); break;
    case 1: CHECK_EQ(multicast_remove_all(p->target), 1); break;
    case 2: break; /* the end of its lifetime removes the delegate below */
    default:
      CHECK_OK(multicast_destroy(p->target));
      p->target = multicast_create();
  }
  CHECK_OK(multicast_lifetime_end(p->lifetime));
}

static void model_queue_and_compare(player *players, int which, int number) {
  unsigned char payload[128];
  size_t i, size = size_of_number(number);
  memcpy(payload, &number, sizeof number);
  for (i = 4; i < size; ++i) payload[i] = (unsigned char)((size_t)number + i);
  CHECK_EQ(multicast_invoke(players[which].target, 0, payload, size), model_queue(which, number));
}

static void model_run_and_compare(multicast_queue q, int max) {
  int expected = max == 0 || max > model.count ? model.count : max;
  made_count = 0;
  CHECK_EQ(multicast_queue_run(q, (size_t)max), expected);
  CHECK_EQ(made_count, expected);
  for (int i = 0; i < expected; ++i) {
    CHECK_EQ(made[i].player, model.waiting[0].player);
    CHECK_EQ(made[i].number, model.waiting[0].number);
    model_erase(0);
    ++model.stats.delivered;
  }
}

static void model_compare_stats(multicast_queue q) {
  multicast_queue_stats s = stats_of(q);
  model.stats.struct_size = (uint32_t)sizeof s;
  model.stats.pending = (uint64_t)model.count;
  CHECK(memcmp(&s.pending, &model.stats.pending, 8 * sizeof s.pending) == 0);
  CHECK_STATUS(multicast_queue_wait(q, 0),
               model.count > 0 ? model.count : MULTICAST_ERROR_TIMEOUT);
}

static void play(int capacity, bool drops, int steps) {
  player players[PLAYERS];
  multicast_queue q = queue_with((uint32_t)capacity, drops ? MULTICAST_OVERFLOW_DROP_OLDEST
                                                           : MULTICAST_OVERFLOW_REFUSE);
  int fd = multicast_queue_fd(q), number = 0, i, step;
  memset(&model, 0, sizeof model);
  model.capacity = capacity;
  model.drops = drops;
  for (i = 0; i < PLAYERS; ++i) {
    players[i].target = multicast_create();
    seat(&players[i], i, q);
  }
  for (step = 0; step < steps; ++step) {
    unsigned what = any(20);
    i = (int)any(PLAYERS);
    if (what < 12) {
      model_queue_and_compare(players, i, ++number);
    } else if (what < 15) {
      model_run_and_compare(q, (int)any((unsigned)capacity + 2));
    } else if (what < 19) {
      unseat(&players[i]);
      model_retract(i);
      seat(&players[i], i, q);
    } else {
      /* fill the queue nearly or completely, so that later removals make gaps */
      while (model.count < capacity && any(50) > 0)
        model_queue_and_compare(players, (int)any(LATEST_FROM), ++number);
    }
    if (step % 5 == 0) model_compare_stats(q);
    CHECK_EQ(is_readable(fd), model.count > 0);
  }
  model_run_and_compare(q, 0);
  CHECK_OK(multicast_queue_destroy(q));
  for (i = 0; i < PLAYERS; ++i) {
    CHECK_EQ(multicast_count(players[i].target), 0);
    CHECK_OK(multicast_destroy(players[i].target));
  }
}

TEST(queue_of_any_capacity_agrees_with_a_model) {
  static const int capacities[] = {1, 2, 3, 11, 150};
  for (row = 0; row < 10; ++row) play(capacities[row / 2], row % 2 == 1, 5000);
}

TEST(queue_that_loses_every_second_call_keeps_the_order) {
  enum { CAPACITY = 100, ROUNDS = 300 };
  multicast_queue q = queue_with(CAPACITY, MULTICAST_OVERFLOW_REFUSE);
  int number = 0;
  player players[2];
  memset(&model, 0, sizeof model);
  model.capacity = CAPACITY;
  for (int i = 0; i < 2; ++i) {
    players[i].target = multicast_create();
    seat(&players[i], i, q);
  }
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; model.count < CAPACITY; ++i) model_queue_and_compare(players, i % 2, ++number);
    /* this call is refused because the queue is full */
    model_queue_and_compare(players, 0, ++number);
    unseat(&players[round % 2]);
    model_retract(round % 2);
    seat(&players[round % 2], round % 2, q);
    if (round % 3 == 0) model_run_and_compare(q, 1 + round % 40);
    model_compare_stats(q);
  }
  model_run_and_compare(q, 0);
}
