/* During an invocation, another thread removes the delegates, makes the library replace the list,
 * and overwrites all memory that the library has freed. The tests do this at many different
 * instructions of the invocation. After an invocation has announced which list it is reading, it
 * must read the list pointer again. Without the second read, these tests would crash. */

#include "steps.h"

#include "../Interface/threads.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { LARGEST = 1024, SIZES = LARGEST / 16, OF_EACH = 3 };
static void *filled[SIZES * OF_EACH];

/* Allocates the most recently freed blocks of all sizes and overwrites them. */
static void fill(void) {
  for (int i = 0; i < SIZES * OF_EACH; ++i) {
    const size_t size = (size_t)(i / OF_EACH + 1) * 16 - 8;
    CHECK((filled[i] = malloc(size)) != NULL);
    memset(filled[i], 0xA5, size);
  }
}

static void empty(void) {
  for (int i = 0; i < SIZES * OF_EACH; ++i) {
    free(filled[i]);
    filled[i] = NULL;
  }
}

/* ---- The delegates --------------------------------------------------------------------------- */

enum { COUNT = 4, MORE = 70 };
static multicast target;
static multicast_token tokens[COUNT];
static bool is_removed[COUNT];
static int calls_made, removals;

FUNCTION(call_numbered, int *number) {
  CHECK(!LOAD(is_removed[*number]));
  ++calls_made;
}

FUNCTION(ignore_call, void *unused) {}

/* Every second delegate has an event mask. The library allocates memory for the mask, and frees it
 * along with the delegate. */
static void add_delegates(void) {
  static int numbers[COUNT] = {0, 1, 2, 3};
  const multicast_add_options options = ADD_OPTIONS(.events = 1);
  for (int i = 0; i < COUNT; ++i) {
    const multicast_delegate numbered = DELEGATE(call_numbered, &numbers[i]);
    tokens[i] = add_with(target, numbered, i % 2 == 0 ? NULL : &options);
    is_removed[i] = false;
  }
}

static void remove_and_reuse(void) {
  for (int i = 0; i < COUNT; ++i) {
    const multicast_status status = multicast_token_remove_within(tokens[i], 0);
    if (status != MULTICAST_ERROR_TIMEOUT) CHECK_OK(status);
    if (status == MULTICAST_OK) STORE(is_removed[i], true);
    removals += status == MULTICAST_OK;
  }
  for (int i = 0; i < MORE; ++i) add(target, DELEGATE(ignore_call, NULL));
  fill();
}

/* ---- The tests ------------------------------------------------------------------------------- */

static void invoke_target(void) {
  CHECK_OK(multicast_thread_prepare());
  begin_steps();
  CHECK(multicast_invoke(target, 0, NULL, 0) >= 0);
}

/* Stops at every third instruction, which suffices because every critical window is longer than
 * that. */
static void at_steps(int first, void (*prepare)(multicast)) {
  int times = 1, removed_at;
  calls_made = removals = 0;
  for (removed_at = first; times == 1; removed_at += 3) {
    target = multicast_create();
    if (prepare != NULL) prepare(target);
    add_delegates();
    times = answer_at_step(removed_at, invoke_target, remove_and_reuse);
    empty();
    CHECK_OK(multicast_destroy(target));
  }
  printf("%d instructions, %d calls, %d removals\n", removed_at, calls_made, removals);
  CHECK(removed_at > 200 && calls_made > 0 && removals > 0);
}

/* Removals in quick succession switch the multicast to its fenced mode, in which invocations
 * execute full fences so that removals need no membarrier call. */
static void let_it_be_fenced(multicast m) {
  let_two_threads_invoke(m);
  for (int i = 0; i < 1000; ++i)
    CHECK_OK(multicast_token_remove(add(m, DELEGATE(ignore_call, NULL))));
}

TEST(removal_at_any_instruction_of_the_first_invocation) { at_steps(0, NULL); }
TEST(removal_at_any_instruction_of_one_of_two_invokers) { at_steps(1, let_two_threads_invoke); }
TEST(removal_at_any_instruction_of_a_fenced_invocation) { at_steps(2, let_it_be_fenced); }
