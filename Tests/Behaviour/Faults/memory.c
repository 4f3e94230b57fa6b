/* Makes each allocation of each function fail once, alone or together with all later
 * allocations. */

#include "../Interface/harness.h"
#include "functions.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

/* The results that a child reports. */
typedef struct report {
  bool was_reached;   /* whether the allocation that should fail has been reached */
  int64_t bytes_kept; /* the number of bytes allocated at the end, if no allocation fails */
} report;
static report *told;

typedef struct attempt {
  const function *f;
  world w;
} attempt;

/* Returns whether all workers of stopped queues have ended. A worker occupies a thread record until
 * it ends. */
static bool is_without_other_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  CHECK(tasks != NULL);
  while (readdir(tasks) != NULL) ++count;
  closedir(tasks);
  return count == 2 + 2; /* the main thread, this thread, and the entries "." and ".." */
}

static void *call_rounds(void *argument) {
  attempt *a = argument;
  const function *f = a->f;
  for (int round = 0; round < f->rounds; ++round) {
    int armed = fail_after;
    fail_after = -1;
    world_state before = world_look(&a->w);
    fail_after = armed;
    has_failed = false;
    int64_t result = f->call(&a->w);
    armed = fail_after;
    fail_after = -1;
    if (has_failed) told->was_reached = true;
    if (result == 0) {
      if (f->memory != MAY_COPE) CHECK(!has_failed);
    } else {
      CHECK_ERROR(result, OUT_OF_MEMORY);
      CHECK(has_failed && f->memory != TAKES_NONE);
      world_expect(&a->w, &before);
    }
    EVENTUALLY(is_without_other_threads());
    fail_after = armed;
  }
  return NULL;
}

static void *call_once(void *argument) {
  attempt *a = argument;
  CHECK_EQ(a->f->call(&a->w), 0);
  return NULL;
}

/* Makes one allocation fail, alone or together with all later allocations, and checks that
 * everything works afterwards. */
static void fail_allocation(const function *f, int which) {
  attempt a;
  a.f = f;
  memset(&a.w, 0, sizeof a.w);
  if (!f->is_first) world_begin(&a.w);
  fail_after = which;
  on_another_thread(call_rounds, &a); /* on a thread without a record */
  fail_after = -1;
  unmake_all(&a.w);
  on_another_thread(call_once, &a); /* the function works again */
  unmake_all(&a.w);
  world_end(&a.w);
}

/* Like fail_allocation(), but runs in a process that has not used the library. Expects that the
 * failure leaves no additional memory allocated. */
static void fail_at_first(const function *f, int which) {
  fail_allocation(f, which);
  if (which < 0) told->bytes_kept = allocated_bytes;
  if (allocated_bytes > told->bytes_kept) CHECK_EQ(allocated_bytes, told->bytes_kept);
}

/* Repeats all failures until the amount of allocated memory no longer grows. The first repetitions
 * may allocate more memory, because the library keeps some for reuse. */
static void fail_again_and_again(const function *f, int unused) {
  int64_t bytes = -1, blocks = -1;
  for (int sweep = 0; bytes != allocated_bytes || blocks != allocated_blocks; ++sweep) {
    CHECK(sweep < 20);
    bytes = allocated_bytes;
    blocks = allocated_blocks;
    for (int which = 0; which == 0 || told->was_reached; ++which) {
      told->was_reached = false;
      fail_allocation(f, which);
    }
  }
}

/* Runs the body in a child process that has not used the library. */
static void in_a_child(void (*body)(const function *, int), const function *f, int which,
                       bool is_single) {
  told->was_reached = false;
  pid_t child = begin_child();
  if (child == 0) {
    use_test_allocator();
    fail_only_once = is_single;
    body(f, which);
    _exit(0);
  }
  int end = end_of_child(child);
  if (end == 0) return;
  fprintf(stderr, "in %s (%s), the allocation after %d fails, %s\n", f->name, f->variant, which,
          is_single ? "once" : "with all later ones");
  CHECK_EQ(end, 0);
}

static void prepare_report(void) {
  told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(told != MAP_FAILED);
}

TEST(out_of_memory_at_each_allocation_of_each_function) {
  int which, total = 0;
  prepare_report();
  for (int i = 0; i < function_count; ++i) {
    const function *f = &functions[i];
    for (int is_single = 1; is_single >= 0; --is_single) {
      in_a_child(fail_at_first, f, -1, true);
      for (which = 0; which == 0 || told->was_reached; ++which, ++total) {
        CHECK(which < 1000);
        in_a_child(fail_at_first, f, which, is_single != 0);
      }
    }
    printf("%-40s %-26s %3d allocations\n", f->name, f->variant, which - 1);
    fflush(stdout);
    CHECK_EQ(which > 1, f->memory != TAKES_NONE);
  }
  printf("%d failures of allocations\n", total);
}

TEST(out_of_memory_again_and_again_leaks_nothing_of_any_function) {
  prepare_report();
  for (int i = 0; i < function_count; ++i) {
    for (int is_single = 1; is_single >= 0; --is_single)
      in_a_child(fail_again_and_again, &functions[i], -1, is_single != 0);
  }
}

/* ---- The table ------------------------------------------------------------------------------- */

TEST(every_function_does_what_it_is_to_do) { use_every_function(); }
