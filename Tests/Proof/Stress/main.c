/* A stress test in which several threads call all of the library's functions at random. */

#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "../../Behaviour/Interface/harness.h"
#include "actor.h"
#include "borrowed.h"
#include "carrier.h"
#include "context.h"
#include "failure.h"
#include "kept.h"
#include "operations.h"
#include "parcel.h"
#include "waker.h"
#include "watchdog.h"
#include "world.h"

enum { MOST_THREADS = 8 };

static uint64_t seed;
static bool is_over; /* whether the round is ending */

static void usage(FILE *out) {
  fprintf(out,
          "Usage: stress [option ...]\n\n"
          "Stress test of libmulticast: several threads call all functions at random, in rounds.\n"
          "Each context checks its own calls and releases. At the end of a round every context\n"
          "and every payload must have been released, and the library must hold no more memory\n"
          "than before.\n\n"
          "  --seed N              seed of the random numbers (default: from the clock)\n"
          "  --seconds N           duration (default: 5)\n"
          "  --threads N           number of threads, 2 to 8 (default: random in each round)\n"
          "  --patience N          seconds without progress that count as a hang (default: 30)\n"
          "  --without-membarrier  make the kernel refuse membarrier, to test the fallback\n"
          "  --help                print this text\n\n"
          "The same seed gives the same random numbers, but threads interleave differently each\n"
          "time: to reproduce a failure, run the printed command several times.\n");
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Performs random operations. The thread ends after its last operation, or inside a call. */
static void *run_operations(void *own_seed) {
  actor_start(*(uint64_t *)own_seed, "with random operations");
  for (uint32_t left = 50 + random_below(1500); left > 0 && !LOAD(is_over); --left) operate();
  while (actor_current()->borrowed != NULL && one_in(2)) borrowed_remove();
  return NULL;
}

/* Keeps running the queues, because invocations may be waiting for room in a full queue. This
 * thread itself never waits. */
static void *keep_queues_going(void *pump_is_over) {
  actor_start(seed, "with queue runs");
  actor_current()->is_plain = true;
  while (!LOAD(*(bool *)pump_is_over)) {
    doing("running queues");
    run_queues();
    doing_end();
  }
  return NULL;
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument) {
  MUST(pthread_create(thread, NULL, body, argument) == 0, "pthread_create");
}

#ifdef __APPLE__ /* waits for the thread, which ends after some operations */
#define pthread_tryjoin_np pthread_join
#endif

static void run_threads(int threads, double end, uint64_t round_seed) {
  pthread_t running[MOST_THREADS];
  uint64_t seeds[MOST_THREADS];
  for (int i = 0; i < threads; ++i) {
    seeds[i] = round_seed + (uint64_t)i * 1000003;
    start(&running[i], run_operations, &seeds[i]);
  }
  while (now_s() < end) {
    pause_ms(1);
    for (int i = 0; i < threads; ++i) {
      if (pthread_tryjoin_np(running[i], NULL) != 0) continue;
      seeds[i] += 7919;
      start(&running[i], run_operations, &seeds[i]);
    }
  }
  STORE(is_over, true);
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL);
  STORE(is_over, false);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static int open_descriptors(void) {
  DIR *directory = opendir("/dev/fd");
  int count = 0;
  MUST(directory != NULL, "/dev/fd");
  while (readdir(directory) != NULL) ++count;
  closedir(directory);
  return count;
}

/* Waits until the threads of destroyed queues have ended, which happens soon after the
 * destruction. */
static void wait_for_queue_threads(void) {
  double end = now_s() + 30;
  while (actor_count(of_a_queue) > 0) {
    if (now_s() > end) {
      actors_print(stderr);
      failed(__FILE__, __LINE__, "all threads of queues have ended", "some still run after 30 s");
    }
    pause_ms(1);
  }
}

/* Waits until all payloads have been released. A thread that ends inside a call may take a moment
 * longer to release its payload. */
static void wait_for_parcels(void) {
  double end = now_s() + 30;
  while (parcel_count() > 0) {
    MUST(now_s() < end, "payloads that were not released: %lld", (long long)parcel_count());
    pause_ms(1);
  }
}

static void run_round(bool is_calm, int threads, double end, uint64_t round_seed) {
  bool pump_is_over = false;
  pthread_t pump;
  world_make(is_calm);
  start(&pump, keep_queues_going, &pump_is_over);
  run_threads(threads, end, round_seed);
  world_destroy_queues();
  wait_for_queue_threads();
  world_destroy_rest();
  STORE(pump_is_over, true);
  pthread_join(pump, NULL);
  MUST(context_count() == 0, "contexts that were not released: %lld",
       (long long)context_count());
  wait_for_parcels();
  wakers_end();
  carriers_end();
  kept_forget();
}

/* Returns how many bytes the library and this program have allocated with malloc(), or 0 if libc
 * does not provide this information. */
static size_t bytes_in_use(void) {
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
  return mallinfo2().uordblks + mallinfo2().hblkhd;
#endif
#endif
  return 0;
}

static void check_nothing_is_kept(int64_t bytes, int descriptors) {
  MUST(LOAD(allocated_bytes) <= bytes, "bytes held: %lld, before the first round %lld",
       (long long)LOAD(allocated_bytes), (long long)bytes);
  MUST(open_descriptors() <= descriptors, "descriptors: %d, before the first round %d",
       open_descriptors(), descriptors);
}

static void run(double seconds, int fixed_threads) {
  double begin, spoken;
  double each = seconds / 3 < 4 ? seconds / 3 : 4;
  int descriptors, rounds = 0;
  actor_start(seed, "main");
  actor_current()->is_plain = true;
  set_call_body(operate_inside);
  set_release_body(operate_inside_function);
  set_wake_body(operate_inside_function);
  set_carrier_body(operate_inside_function);
  doing("warming up");
  world_warm_up();
  doing_end();
  begin = spoken = now_s();
  double end = begin + seconds;
  int64_t bytes = LOAD(allocated_bytes);
  descriptors = open_descriptors();
  while (now_s() < end) {
    int threads = fixed_threads > 0 ? fixed_threads : 2 + (int)random_below(MOST_THREADS - 1);
    run_round(rounds % 2 == 0, threads, now_s() + each, random_number());
    check_nothing_is_kept(bytes, descriptors);
    ++rounds;
    if (now_s() - spoken < 5 && now_s() < end) continue;
    spoken = now_s();
    fprintf(stderr,
            "%4.0f s, %d rounds, %llu calls, %llu releases, %llu of payloads, %zu bytes allocated, "
            "%lld bytes held\n",
            spoken - begin, rounds, (unsigned long long)context_calls(),
            (unsigned long long)context_releases(), (unsigned long long)parcel_releases(),
            bytes_in_use(), (long long)LOAD(allocated_bytes));
  }
}

/* Returns the number that a text contains, or -1 if the text is not a number or the number is out
 * of range. */
static double number_in(const char *text, double least, double most) {
  char *end;
  double number = strtod(text, &end);
  return end != text && *end == '\0' && number >= least && number <= most ? number : -1;
}

int main(int argc, char **argv) {
  bool is_without_membarrier_here = false;
  double seconds = 5, number;
  int threads = 0, patience = 30;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  seed = ((uint64_t)t.tv_sec << 20 ^ (uint64_t)t.tv_nsec) % 1000000000;
  for (int i = 1; i < argc; ++i) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
      usage(stdout);
      return 0;
    }
    if (strcmp(name, "--without-membarrier") == 0) {
      is_without_membarrier_here = true;
      continue;
    }
    number = -1;
    if (value == NULL) value = "";
    if (strcmp(name, "--seed") == 0) seed = (uint64_t)(number = number_in(value, 0, 1e15));
    else if (strcmp(name, "--seconds") == 0) seconds = number = number_in(value, 0.1, 1e7);
    else if (strcmp(name, "--threads") == 0)
      threads = (int)(number = number_in(value, 2, MOST_THREADS));
    else if (strcmp(name, "--patience") == 0) patience = (int)(number = number_in(value, 1, 1e6));
    if (number < 0) {
      usage(stderr);
      return 2;
    }
    ++i;
  }
  snprintf(command_again, sizeof command_again, "%s --seed %llu --seconds %g --patience %d%s%.0d%s",
           argv[0], (unsigned long long)seed, seconds, patience, threads > 0 ? " --threads " : "",
           threads, is_without_membarrier_here ? " --without-membarrier" : "");
  fprintf(stderr, "%s\n", command_again);
  print_command_on_signals();
  if (is_without_membarrier_here) deny_membarrier();
  use_test_allocator();
  actor_set_seed(seed);
  watchdog_start(patience);
  run(seconds, threads);
  return 0;
}
