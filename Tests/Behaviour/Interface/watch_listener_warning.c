/* Tests when a watch's `listener_warning` is called, and with which arguments. */

#include "allocators.h"
#include "broadcasters.h"
#include "reports.h"

/* The notifications, each written as one word. A word consists of the count, the label or a letter
 * for the function, and the number of delegates with that label or function. */
static char told[1024];
static multicast last;
static pthread_t notifier;
static void (*in_function)(void);

static void note_warning(void *context, multicast target, uint64_t count, const char *label,
                       multicast_function function, uint64_t most) {
  size_t end = strlen(told);
  const char *name = label != NULL                ? label
                     : function == count_call     ? "A"
                     : function == count_call_too ? "B"
                     : function == NULL           ? "-"
                                                  : "?";
  CHECK(context == told);
  CHECK((label != NULL) + (function != NULL) == (most != 0));
  snprintf(told + end, sizeof told - end, "%s%d:%s:%d", end == 0 ? "" : " ", (int)count, name,
           (int)most);
  last = target;
  notifier = pthread_self();
  if (in_function != NULL) in_function();
}

static multicast_watch from(uint64_t count) {
  return WATCH_WITH(.context = told, .listener_warning_count = count,
                    .listener_warning = note_warning);
}

static multicast watched(uint64_t count) {
  multicast m = multicast_create();
  multicast_watch watch = from(count);
  CHECK_OK(multicast_set_watch(m, &watch));
  return m;
}

static void watch_all(uint64_t count) {
  multicast all = {0};
  multicast_watch watch = from(count);
  CHECK_OK(multicast_set_watch(all, &watch));
}

static multicast_delegate too(void) {
  return DELEGATE(count_call_too, &calls);
}

static multicast_add_options labelled(const char *label) {
  return ADD_OPTIONS(.label = label);
}

static void add_times(int times, multicast m, multicast_delegate d) {
  while (times-- > 0) add(m, d);
}

static void add_labelled(int times, multicast m, const char *label) {
  multicast_add_options options = labelled(label);
  while (times-- > 0) add_with(m, counter(&calls), &options);
}

/* Adds the given number of delegates, and expects the text to contain all notifications since the
 * test began. */
#define CHECK_TOLD(times, m, text) (add_times(times, m, counter(&calls)), CHECK_TEXT(told, text))

/* ---- When `listener_warning` is called ------------------------------------------------------- */

TEST(listener_warning_is_called_once_for_each_doubling) {
  multicast m = watched(3);
  CHECK_TOLD(2, m, "");
  CHECK_TOLD(1, m, "3:A:3");
  CHECK_EQ(last.id, m.id);
  CHECK_TOLD(100, m, "3:A:3 6:A:6 12:A:12 24:A:24 48:A:48 96:A:96");
}

TEST(listener_warning_is_called_at_each_first_number_exactly) {
  for (int first = 2; first < 130; ++first) {
    multicast m = watched((uint64_t)first);
    char wanted[64];
    told[0] = '\0';
    for (int i = 1; i < first; ++i) add(m, counter(&calls));
    CHECK_TEXT(told, "");
    add(m, counter(&calls));
    snprintf(wanted, sizeof wanted, "%d:A:%d", first, first);
    CHECK_TEXT(told, wanted);
    for (int i = first + 1; i < 2 * first; ++i) add(m, counter(&calls));
    CHECK_TEXT(told, wanted);
    CHECK_OK(multicast_destroy(m));
  }
}

TEST(listener_warning_is_never_called_without_number_or_function) {
  multicast m = watched(0), n = multicast_create();
  multicast_watch watch = from(2);
  watch.listener_warning = NULL;
  CHECK_OK(multicast_set_watch(n, &watch));
  add_times(50, m, counter(&calls));
  CHECK_TOLD(50, n, "");
}

TEST(listener_warning_of_1_is_taken_as_2) {
  multicast m = watched(1);
  CHECK_TOLD(1, m, "");
  CHECK_TOLD(3, m, "2:A:2 4:A:4");
}

TEST(listener_warning_of_a_huge_number_is_never_called) {
  multicast m = watched(UINT64_MAX), n = watched((uint64_t)1 << 63);
  add_times(3000, m, counter(&calls));
  CHECK_TOLD(3000, n, "");
}

/* Delegates are removed from the middle and the end of the list, all delegates are removed with one
 * call, and other delegates are added. */
TEST(listener_warning_is_not_called_again_after_removals) {
  multicast m = watched(8);
  multicast_token tokens[40];
  for (int i = 0; i < 8; ++i) tokens[i] = add(m, counter(&calls));
  CHECK_TEXT(told, "8:A:8");
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 8; ++i) {
      int other = (i * 5 + round) % 8;
      CHECK_OK(multicast_token_remove(tokens[other]));
      tokens[other] = add(m, counter(&calls));
    }
  }
  for (int i = 0; i < 8; ++i) CHECK_OK(multicast_token_remove(tokens[i]));
  add_times(15, m, counter(&calls));
  CHECK_EQ(multicast_remove_all(m), 15);
  CHECK_TOLD(15, m, "8:A:8");
  CHECK_TOLD(1, m, "8:A:8 16:A:16");
}

/* The list contains dead entries, as it does whenever invocations may be reading it. */
TEST(listener_warning_counts_live_delegates_only) {
  multicast m = watched(40);
  multicast_token tokens[39];
  for (int i = 0; i < 39; ++i) tokens[i] = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 39);
  for (int round = 0; round < 200; ++round) {
    CHECK_OK(multicast_token_remove(tokens[round * 7 % 39]));
    tokens[round * 7 % 39] = add(m, counter(&calls));
    CHECK_TEXT(told, "");
  }
  add(m, counter(&calls));
  CHECK_TEXT(told, "40:A:40");
}

TEST(listener_warning_is_called_anew_when_a_watch_is_set_anew) {
  multicast m = watched(4);
  multicast_watch watch = from(3);
  CHECK_TOLD(4, m, "4:A:4");
  CHECK_OK(multicast_set_watch(m, &watch));
  CHECK_TOLD(1, m, "4:A:4 5:A:5"); /* there were already more than 3 before the new watch was set */
  CHECK_TOLD(1, m, "4:A:4 5:A:5 6:A:6");
}

TEST(listener_warning_is_called_once_if_an_add_passes_several) {
  multicast m = watched(2);
  static multicast_delegate many[20];
  for (int i = 0; i < 20; ++i) many[i] = counter(&calls);
  CHECK_OK(multicast_add_many(m, many, 20, NULL, NULL));
  CHECK_TEXT(told, "20:A:20");
  CHECK_TOLD(12, m, "20:A:20 32:A:32");
}

TEST(listener_warning_is_not_called_when_the_watch_was_removed) {
  multicast m = watched(4);
  add_times(3, m, counter(&calls));
  CHECK_OK(multicast_set_watch(m, NULL));
  CHECK_TOLD(100, m, "");
}

TEST(listener_warning_is_called_with_any_options) {
  multicast m = watched(2);
  multicast_add_options options = ADD_OPTIONS(.priority = 5);
  add_with(m, counter(&calls), &options);
  options.priority = 7;
  add_with(m, counter(&calls), &options);
  CHECK_TEXT(told, "2:A:2");
  options.flags = MULTICAST_UNIQUE;
  add_with(m, counter(&calls), &options);
  add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_TEXT(told, "2:A:2");
}

/* ---- The watched multicasts ------------------------------------------------------------------ */

TEST(listener_warning_of_all_is_called_for_old_and_new) {
  multicast before = multicast_create(), after, invoked = multicast_create();
  add_times(3, before, counter(&calls));
  add_times(1, invoked, counter(&calls));
  CHECK_EQ(multicast_invoke(invoked, 0, NULL, 0), 1);
  watch_all(4);
  CHECK_TOLD(1, before, "4:A:4");
  CHECK_EQ(last.id, before.id);
  after = multicast_create();
  CHECK_TOLD(4, after, "4:A:4 4:A:4");
  CHECK_EQ(last.id, after.id);
  CHECK_TOLD(3, invoked, "4:A:4 4:A:4 4:A:4");
  CHECK_EQ(last.id, invoked.id);
}

TEST(listener_warning_of_all_is_not_called_beside_an_own_watch) {
  multicast m = watched(6), silent = watched(0);
  watch_all(2);
  add_times(5, m, counter(&calls));
  CHECK_TOLD(50, silent, "");
  CHECK_TOLD(1, m, "6:A:6");
  watch_all(3); /* reports nothing, because `m` has another watch */
  CHECK_TOLD(5, m, "6:A:6");
  CHECK_TOLD(1, m, "6:A:6 12:A:12");
}

TEST(listener_warning_of_a_name_is_called_with_that_multicast) {
  static report r;
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  watch_all(4);
  for (int i = 0; i < 4; ++i) {
    CHECK_OK(multicast_broadcaster_register(b, "UpdateTitle", counter(&calls), NULL, NULL));
  }
  CHECK_TEXT(told, "4:A:4");
  CHECK_EQ(last.id, multicast_broadcaster_multicast(b, "UpdateTitle").id);
  CHECK(has_line(described(&r, last), "multicast 0x... \"UpdateTitle\": delegates: 4"));
}

TEST(listener_warning_of_a_multicast_with_policies_is_called) {
  multicast m = multicast_create_with(&CREATE_OPTIONS(.replay = 2, .label = "with policies"));
  watch_all(3);
  CHECK_TOLD(6, m, "3:A:3 6:A:6");
  CHECK_EQ(last.id, m.id);
}

/* ---- The most frequent label or function ----------------------------------------------------- */

TEST(listener_warning_has_the_most_frequent_function) {
  multicast m = watched(10);
  add_times(3, m, counter(&calls));
  add_times(6, m, too());
  CHECK_TOLD(1, m, "10:B:6");
}

TEST(listener_warning_has_the_most_frequent_label) {
  multicast m = watched(10);
  multicast_add_options options = labelled("leak");
  add_labelled(3, m, "leak");
  add_times(4, m, counter(&calls));
  add_with(m, too(), &options);
  add_with(m, too(), &options);
  add_labelled(1, m, "other");
  CHECK_TEXT(told, "10:leak:5");
}

/* The library counts delegates by their function only if they have no label. */
TEST(listener_warning_counts_those_without_a_label_by_function) {
  multicast m = watched(9);
  add_labelled(2, m, "a");
  add_labelled(2, m, "b");
  add_times(2, m, too());
  CHECK_TOLD(3, m, "9:A:3");
}

static void add_different(int first, int count, multicast m) {
  char label[16];
  for (; count > 0; --count) {
    snprintf(label, sizeof label, "%d", first++);
    add_labelled(1, m, label);
  }
}

TEST(listener_warning_finds_what_more_than_one_in_nine_have) {
  multicast m = watched(170);
  add_different(0, 75, m);
  add_labelled(19, m, "leak"); /* 19 * 9 = 171, just above 170 */
  add_different(75, 76, m);
  CHECK_TEXT(told, "170:leak:19");
}

TEST(listener_warning_says_nothing_of_what_one_in_nine_have) {
  multicast m = watched(171);
  add_different(0, 75, m);
  add_labelled(19, m, "leak");
  add_different(75, 77, m);
  CHECK_TEXT(told, "171:-:0");
}

TEST(listener_warning_does_not_count_what_was_removed) {
  multicast m = watched(6);
  multicast_token tokens[4];
  add_times(3, m, too());
  for (int i = 0; i < 2; ++i) tokens[i] = add(m, counter(&calls));
  for (int i = 0; i < 2; ++i) CHECK_OK(multicast_token_remove(tokens[i]));
  add_times(2, m, too());
  CHECK_TOLD(1, m, "6:B:5");
}

/* ---- The function ---------------------------------------------------------------------------- */

THREAD(add_two, multicast *argument) {
  add_times(2, *argument, counter(&calls));
  CHECK(pthread_equal(notifier, pthread_self()));
}

TEST(listener_warning_is_called_on_the_thread_that_adds) {
  multicast m = watched(2);
  on_another_thread(add_two, &m);
  CHECK_TEXT(told, "2:A:2");
}

static bool fails;

static void *fail_large(void *context, size_t size, size_t alignment) {
  return LOAD(fails) && size > 4096 ? NULL : allocate_aligned(size, alignment);
}

THREAD(add_without_memory, multicast *argument) {
  multicast m = *argument;
  STORE(fails, true); /* keeps this thread, which has no record, from allocating one */
  add_times(2, m, counter(&calls));
  STORE(fails, false);
  CHECK_TEXT(told, "");
  add_times(2, m, counter(&calls));
}

TEST(listener_warning_is_not_called_without_memory_for_the_thread) {
  use_allocator(fail_large, NULL);
  multicast m = watched(2);
  add(m, counter(&calls)); /* allocates what the first add needs */
  CHECK_OK(multicast_remove_every(m, counter(&calls)));
  on_another_thread(add_without_memory, &m);
  CHECK_TEXT(told, "4:A:4");
}

static void go_deeper(void *context, uint32_t event, const void *payload, size_t size) {
  if (event < 255) multicast_invoke(*(multicast *)context, event + 1, NULL, 0);
  if (event == 255) add_times(2, last, counter(&calls)); /* this is the 256th level of nesting */
}

TEST(listener_warning_at_the_256th_level_waits_for_the_next_add) {
  multicast m = watched(2), deep = multicast_create();
  add(deep, DELEGATE(go_deeper, &deep));
  last = m;
  CHECK_EQ(multicast_invoke(deep, 0, NULL, 0), 1);
  CHECK_TEXT(told, "");
  CHECK_TOLD(2, m, "3:A:3 4:A:4");
}

/* ---- A watch that is replaced while threads add delegates ------------------------------------ */

enum { SETS = 2000, TARGETS = 16, MOST = 100 };

static multicast targets[TARGETS];
static int notified[SETS][TARGETS]; /* one bit per doubling */
static int wrong;
static bool ends;

/* The `listener_warning` of all watches. Its context is the number of the watch. Watches with odd
 * numbers warn once there are 4 delegates, all other watches once there are 2. */
static void check_crowd(void *context, multicast target, uint64_t count, const char *label,
                        multicast_function function, uint64_t most) {
  const size_t number = (size_t)context;
  uint64_t least = number % 2 != 0 ? 4 : 2;
  int bit = 1, index = 0;
  if (count < least) ADD(wrong, 1);
  for (; least * 2 <= count; least *= 2) bit *= 2;
  while (targets[index].id != target.id) ++index;
  if ((__atomic_fetch_or(&notified[number][index], bit, __ATOMIC_SEQ_CST) & bit) != 0)
    ADD(wrong, 1);
}

THREAD(add_to_all, void *argument) {
  for (unsigned i = 0; !LOAD(ends); ++i) {
    multicast m = targets[i % TARGETS];
    add_times(4, m, counter(&calls));
    if (multicast_count(m) > MOST) multicast_remove_all(m);
  }
}

TEST(listener_warning_is_right_while_the_watch_of_all_is_replaced) {
  for (int i = 0; i < TARGETS; ++i) targets[i] = multicast_create();
  pthread_t first = start_thread(add_to_all, NULL), second = start_thread(add_to_all, NULL);
  for (size_t i = 0; i < SETS && LOAD(wrong) == 0; ++i) {
    multicast_watch watch = from(i % 2 != 0 ? 4 : 2);
    multicast all = {0};
    watch.context = (void *)i;
    watch.listener_warning = check_crowd;
    CHECK(multicast_set_watch(all, &watch) >= 0);
  }
  STORE(ends, true);
  join_thread(first);
  join_thread(second);
  CHECK_EQ(wrong, 0);
}

static void use_everything(void) {
  in_function = NULL;
  CHECK_EQ(multicast_count(last), 2);
  CHECK_EQ(multicast_invoke(last, 0, NULL, 0), 2);
  CHECK_EQ(multicast_remove_all(last), 2);
  CHECK_STATUS(multicast_set_watch(last, NULL), MULTICAST_PENDING);
  CHECK(multicast_destroy(last) >= 0);
}

TEST(listener_warning_function_may_use_the_library) {
  multicast m = watched(2);
  in_function = use_everything;
  CHECK_TOLD(2, m, "2:A:2");
  CHECK(!multicast_is_valid(m));
  CHECK_EQ(calls, 2);
}

static void add_more(void) {
  in_function = NULL;
  add_times(10, last, counter(&calls));
}

TEST(listener_warning_inside_a_watch_waits_for_the_next_add) {
  multicast m = watched(2);
  in_function = add_more;
  CHECK_TOLD(2, m, "2:A:2"); /* the multicast has 12 delegates by now */
  CHECK_TOLD(1, m, "2:A:2 13:A:13");
}

static gate entered = GATE_INIT, let_go = GATE_INIT, taken = GATE_INIT;

static void block_function(void) {
  gate_open(&entered);
  gate_wait(&let_go);
}

THREAD(add_in_thread, multicast *argument) {
  add_times(2, *argument, counter(&calls));
}

THREAD(take_away, multicast *argument) {
  CHECK_OK(multicast_set_watch(*argument, NULL));
  gate_open(&taken);
}

TEST(listener_warning_is_waited_for_when_the_watch_is_removed) {
  multicast m = watched(2);
  in_function = block_function;
  pthread_t adds = start_thread(add_in_thread, &m);
  gate_wait(&entered);
  pthread_t takes = start_thread(take_away, &m);
  CHECK(!gate_opens_within(&taken, A_WHILE_MS));
  add(m, counter(&calls)); /* no lock is held */
  gate_open(&let_go);
  join_thread(adds);
  join_thread(takes);
}

/* ---- Large multicasts, many threads ---------------------------------------------------------- */

enum { THREADS = 4, ADDS = 2000 };

THREAD(add_many_times, multicast *argument) {
  for (int i = 0; i < ADDS; ++i) {
    multicast_token token = add(*argument, counter(&calls));
    if (i % 4 == 0) CHECK_OK(multicast_token_remove(token));
    if (i % 64 == 0) CHECK(multicast_invoke(*argument, 0, NULL, 0) >= 0);
  }
}

static int numbers;

static void count_numbers(void *context, multicast target, uint64_t count, const char *label,
                          multicast_function function, uint64_t most) {
  CHECK(function == count_call);
  CHECK_EQ(most, count);
  ADD(numbers, 1);
}

TEST_OF_MULTICAST(listener_warning_is_called_once_per_number_by_all_threads) {
  multicast_watch watch = from(4);
  pthread_t threads[THREADS];
  int64_t number;
  int i, wanted = 0;
  watch.listener_warning = count_numbers;
  CHECK_OK(multicast_set_watch(m, &watch));
  for (i = 0; i < THREADS; ++i) threads[i] = start_thread(add_many_times, &m);
  for (i = 0; i < THREADS; ++i) join_thread(threads[i]);
  int64_t live = multicast_count(m);
  CHECK_EQ(live, THREADS * ADDS * 3 / 4);
  for (number = 4; number <= live; number *= 2) ++wanted;
  CHECK_EQ(numbers, wanted); /* the final count is not near a power of 2 */
}
