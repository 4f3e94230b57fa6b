/* The broadcaster group: multicasts by name. */

#include "harness.h"

#include <sys/mman.h>
#include <unistd.h>

#define NAME "UpdateTitle"

enum { LONGEST = 255 };

static int calls;
static char payload_sent[] = "a payload";

static multicast_broadcaster create(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK(b.id != 0);
  return b;
}

static multicast_queue create_queue(void) {
  multicast_queue q = multicast_queue_create(NULL);
  CHECK(q.id != 0);
  return q;
}

static multicast_broadcaster create_on(multicast_queue q) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  multicast_broadcaster b;
  options.queue = q;
  b = multicast_broadcaster_create(&options);
  CHECK(b.id != 0);
  return b;
}

static multicast_token observe_with(multicast_broadcaster b, const char *name,
                                    multicast_delegate d, const multicast_options *options) {
  multicast_token token = {0};
  CHECK_OK(multicast_broadcaster_register(b, name, d, options, &token));
  CHECK(token.id != 0);
  return token;
}

static multicast_token observe(multicast_broadcaster b, const char *name, multicast_delegate d) {
  return observe_with(b, name, d, NULL);
}

static int64_t notify(multicast_broadcaster b, const char *name) {
  return multicast_broadcaster_notify(b, name, 0, NULL, 0);
}

static multicast find(multicast_broadcaster b, const char *name) {
  multicast m = multicast_broadcaster_multicast(b, name);
  CHECK(m.id != 0);
  return m;
}

/* A name of many. The text is good until this thread asks for four others. */
static const char *numbered(const char *prefix, int number) {
  static __thread char names[4][32];
  static __thread unsigned last;
  char *name = names[++last % 4];
  snprintf(name, sizeof names[0], "%s.%d", prefix, number);
  return name;
}

/* An observer whose calls and releases are counted apart. */
typedef struct observer {
  int calls;
  int releases;
} observer;

static void call_observer(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  ADD(((observer *)context)->calls, 1);
}

static void release_observer(void *context) { ADD(((observer *)context)->releases, 1); }

static multicast_delegate observing(observer *o) {
  multicast_delegate d;
  d.function = call_observer;
  d.context = o;
  return d;
}

static void expect_stale(multicast_broadcaster b) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_token token = {77};
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&o), &options, &token),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, observing(&o)),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_unregister_all(b, NAME), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(notify(b, NAME), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(b, NAME).id, 0);
  CHECK_STATUS(multicast_broadcaster_destroy(b), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(o.calls, 0);
  CHECK_EQ(o.releases, 1);
}

/* ---- Register, notify, unregister ------------------------------------------------------------ */

TEST(broadcaster_notifies_the_observers_of_a_name) {
  multicast_broadcaster b = create();
  int first = 0, second = 0;
  observe(b, NAME, counter(&first));
  observe(b, NAME, counter(&second));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(notify(b, NAME), 2);
  CHECK(first == 2 && second == 2);
  CHECK_OK(multicast_broadcaster_destroy(b));
}

static void expect_what_was_sent(void *context, uint32_t event, const void *payload,
                                 size_t size) {
  CHECK_EQ(event, 7);
  CHECK(payload == payload_sent);
  CHECK_EQ(size, sizeof payload_sent);
  ADD(*(int *)context, 1);
}

TEST(broadcaster_passes_event_payload_and_size_on) {
  multicast_broadcaster b = create();
  multicast_delegate d;
  d.function = expect_what_was_sent;
  d.context = &calls;
  observe(b, NAME, d);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 7, payload_sent, sizeof payload_sent), 1);
  CHECK_EQ(calls, 1);
}

TEST(broadcaster_calls_observers_without_a_queue_on_the_notifying_thread) {
  multicast_broadcaster b = create();
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(calls, 1);
}

TEST(broadcaster_notify_of_a_name_nobody_registered_is_0) {
  multicast_broadcaster b = create();
  CHECK_EQ(notify(b, NAME), 0);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, "UpdateTitl"), 0);
  CHECK_EQ(notify(b, "updateTitle"), 0);
  CHECK_EQ(multicast_broadcaster_notify(b, "Other", 0, payload_sent, 1), 0);
  CHECK_EQ(calls, 0);
}

TEST(broadcaster_asked_for_unknown_names_takes_no_memory) {
  multicast_broadcaster b;
  int64_t before;
  int i;
  use_test_allocator();
  b = create();
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  before = allocated_bytes;
  for (i = 0; i < 10000; ++i) {
    const char *name = numbered("unknown", i);
    CHECK_EQ(notify(b, name), 0);
    CHECK_EQ(multicast_broadcaster_unregister_all(b, name), 0);
    CHECK_STATUS(multicast_broadcaster_unregister(b, name, counter(&calls)),
                 MULTICAST_ERROR_NOT_FOUND);
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(broadcaster_notify_of_a_size_without_a_payload_is_invalid_argument) {
  multicast_broadcaster b = create();
  observe(b, NAME, counter(&calls));
  CHECK_STATUS(multicast_broadcaster_notify(b, NAME, 0, NULL, 1),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(calls, 0);
}

TEST(broadcaster_does_not_notify_who_has_unregistered) {
  multicast_broadcaster b = create();
  int first = 0, second = 0;
  observe(b, NAME, counter(&first));
  observe(b, NAME, counter(&second));
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&first)));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK(first == 0 && second == 1);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&second)));
  CHECK_EQ(notify(b, NAME), 0);
}

TEST(broadcaster_unregister_of_an_unknown_name_is_not_found) {
  multicast_broadcaster b = create();
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, counter(&calls)),
               MULTICAST_ERROR_NOT_FOUND);
  observe(b, NAME, counter(&calls));
  CHECK_STATUS(multicast_broadcaster_unregister(b, "Other", counter(&calls)),
               MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_unregister_of_an_unknown_observer_is_not_found) {
  multicast_broadcaster b = create();
  multicast_delegate same_context, same_function;
  int other = 0;
  observe(b, NAME, counter(&calls));
  same_context.function = count_call_too;
  same_context.context = &calls;
  same_function = counter(&other);
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, same_context),
               MULTICAST_ERROR_NOT_FOUND);
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, same_function),
               MULTICAST_ERROR_NOT_FOUND);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, counter(&calls)),
               MULTICAST_ERROR_NOT_FOUND);
}

TEST(broadcaster_unregister_removes_the_first_of_equal_observers) {
  multicast_broadcaster b = create();
  multicast_token first = observe(b, NAME, counter(&calls));
  multicast_token second = observe(b, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK(!multicast_token_is_live(first));
  CHECK(multicast_token_is_live(second));
}

TEST(broadcaster_unregister_releases_the_context) {
  multicast_broadcaster b = create();
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  observe_with(b, NAME, observing(&o), &options);
  CHECK_EQ(o.releases, 0);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, observing(&o)));
  CHECK_EQ(o.releases, 1);
}

TEST(broadcaster_unregister_all_counts_and_leaves_other_names_alone) {
  multicast_broadcaster b = create();
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  int i;
  for (i = 0; i < 10; ++i) observe_with(b, NAME, observing(&o), &options);
  observe(b, "Other", counter(&calls));
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 10);
  CHECK_EQ(o.releases, 10);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 0);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_EQ(notify(b, "Other"), 1);
}

TEST(broadcaster_unregister_all_of_a_name_nobody_registered_is_0) {
  CHECK_EQ(multicast_broadcaster_unregister_all(create(), NAME), 0);
}

TEST(broadcaster_notifies_twice_who_registers_twice) {
  multicast_broadcaster b = create();
  observe(b, NAME, counter(&calls));
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(calls, 2);
}

TEST(broadcaster_notifies_once_and_last_who_registers_again_as_unique) {
  char text[16] = "";
  letter a = {text, 'a'}, other = {text, 'b'};
  multicast_options options = multicast_options_default();
  multicast_broadcaster b = create();
  options.flags = MULTICAST_UNIQUE;
  observe_with(b, NAME, writer(&a), &options);
  observe_with(b, NAME, writer(&other), &options);
  observe_with(b, NAME, writer(&a), &options);
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_TEXT(text, "ba");
}

TEST(broadcaster_unique_is_about_one_name) {
  multicast_options options = multicast_options_default();
  multicast_broadcaster b = create();
  options.flags = MULTICAST_UNIQUE;
  observe_with(b, NAME, counter(&calls), &options);
  observe_with(b, "Other", counter(&calls), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, "Other"), 1);
}

TEST(broadcaster_registers_without_a_token_wanted) {
  multicast_broadcaster b = create();
  CHECK_OK(multicast_broadcaster_register(b, NAME, counter(&calls), NULL, NULL));
  CHECK_STATUS(multicast_broadcaster_register(b, "", counter(&calls), NULL, NULL),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(notify(b, NAME), 1);
}

/* ---- Names ----------------------------------------------------------------------------------- */

TEST(broadcaster_names_that_are_prefixes_of_each_other_never_meet) {
  static int each[LONGEST + 1];
  char name[LONGEST + 1];
  multicast_broadcaster b = create();
  int length, other;
  memset(name, 'a', sizeof name);
  for (length = 1; length <= LONGEST; ++length) {
    name[length] = '\0';
    observe(b, name, counter(&each[length]));
    name[length] = 'a';
  }
  for (length = 1; length <= LONGEST; ++length) {
    name[length] = '\0';
    CHECK_EQ(notify(b, name), 1);
    CHECK_EQ(each[length], 1);
    name[length] = 'a';
  }
  for (other = 1; other <= LONGEST; ++other) CHECK_EQ(each[other], 1);
}

TEST(broadcaster_names_that_differ_in_one_byte_never_meet) {
  enum { PLACES = 6, BYTES = 256 };
  static const int places[PLACES] = {0, 1, 8, 100, LONGEST - 2, LONGEST - 1};
  static int each[PLACES][BYTES];
  char name[LONGEST + 1];
  multicast_broadcaster b = create();
  int place, byte, round;
  memset(name, 'n', LONGEST);
  name[LONGEST] = '\0';
  for (round = 0; round < 2; ++round) {
    for (place = 0; place < PLACES; ++place) {
      for (byte = 1; byte < BYTES; ++byte) {
        if (byte == 'n') continue; /* the same for all places */
        name[places[place]] = (char)byte;
        if (round == 0) {
          observe(b, name, counter(&each[place][byte]));
        } else {
          CHECK_EQ(notify(b, name), 1);
          CHECK_EQ(each[place][byte], 1);
        }
      }
      name[places[place]] = 'n';
    }
  }
  CHECK_EQ(notify(b, name), 0);
}

TEST(broadcaster_names_that_differ_in_the_last_byte_never_meet_at_any_length) {
  char name[LONGEST + 1];
  multicast_broadcaster b = create();
  int length;
  for (length = 1; length <= LONGEST; ++length) {
    int ends_in_x = 0, ends_in_y = 0;
    memset(name, 'n', sizeof name);
    name[length] = '\0';
    name[length - 1] = 'x';
    observe(b, name, counter(&ends_in_x));
    name[length - 1] = 'y';
    observe(b, name, counter(&ends_in_y));
    CHECK_EQ(notify(b, name), 1);
    CHECK(ends_in_x == 0 && ends_in_y == 1);
    CHECK_OK(multicast_broadcaster_unregister(b, name, counter(&ends_in_y)));
    name[length - 1] = 'x';
    CHECK_EQ(notify(b, name), 1);
    CHECK(ends_in_x == 1 && ends_in_y == 1);
    CHECK_EQ(multicast_broadcaster_unregister_all(b, name), 1);
  }
}

TEST(broadcaster_names_hold_any_byte_but_nul) {
  static int each[256];
  char name[2] = "";
  multicast_broadcaster b = create();
  int byte;
  for (byte = 1; byte < 256; ++byte) {
    name[0] = (char)byte;
    observe(b, name, counter(&each[byte]));
  }
  for (byte = 1; byte < 256; ++byte) {
    name[0] = (char)byte;
    CHECK_EQ(notify(b, name), 1);
    CHECK_EQ(each[byte], 1);
  }
  observe(b, "\xE6\xA0\x87\xE9\xA2\x98", counter(&calls));
  CHECK_EQ(notify(b, "\xE6\xA0\x87\xE9\xA2\x98"), 1);
  CHECK_EQ(notify(b, "\xE6\xA0\x87\xE9\xA2\x99"), 0);
}

TEST(broadcaster_names_end_at_the_first_nul) {
  static const char first[] = "same\0one", second[] = "same\0two";
  multicast_broadcaster b = create();
  observe(b, first, counter(&calls));
  CHECK_EQ(notify(b, second), 1);
}

TEST(broadcaster_names_of_255_bytes_are_names) {
  char name[LONGEST + 1];
  multicast_broadcaster b = create();
  memset(name, 0xFF, LONGEST);
  name[LONGEST] = '\0';
  observe(b, name, counter(&calls));
  CHECK_EQ(notify(b, name), 1);
  CHECK(multicast_is_valid(find(b, name)));
  CHECK_OK(multicast_broadcaster_unregister(b, name, counter(&calls)));
  CHECK_EQ(multicast_broadcaster_unregister_all(b, name), 0);
}

static void expect_no_name(multicast_broadcaster b, const char *name) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_token token = {77};
  CHECK_STATUS(multicast_broadcaster_register(b, name, observing(&o), &options, &token),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_STATUS(multicast_broadcaster_unregister(b, name, observing(&o)),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_broadcaster_unregister_all(b, name), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(notify(b, name), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(multicast_broadcaster_multicast(b, name).id, 0);
  CHECK(o.calls == 0 && o.releases == 1);
}

TEST(broadcaster_name_that_is_null_is_invalid_argument) {
  expect_no_name(create(), NULL);
  expect_no_name(multicast_broadcaster_default(), NULL);
}

TEST(broadcaster_name_that_is_empty_is_invalid_argument) {
  expect_no_name(create(), "");
  expect_no_name(multicast_broadcaster_default(), "");
}

TEST(broadcaster_name_that_is_too_long_is_invalid_argument) {
  enum { LONG = 1 << 20 };
  char *name = malloc(LONG + 1);
  multicast_broadcaster b = create();
  CHECK(name != NULL);
  memset(name, 'n', LONG);
  name[LONG] = '\0';
  expect_no_name(b, name);
  name[LONGEST + 2] = '\0';
  expect_no_name(b, name);
  name[LONGEST + 1] = '\0';
  expect_no_name(b, name);
  name[LONGEST] = '\0';
  observe(b, name, counter(&calls));
  free(name);
}

TEST(broadcaster_copies_the_name) {
  char name[LONGEST + 1] = NAME;
  multicast_broadcaster b = create();
  multicast m;
  observe(b, name, counter(&calls));
  memset(name, 'x', LONGEST);
  CHECK_EQ(notify(b, NAME), 1);
  strcpy(name, "Other");
  m = find(b, name);
  memset(name, 'x', LONGEST);
  CHECK_EQ(find(b, "Other").id, m.id);
  CHECK_EQ(calls, 1);
}

TEST(broadcaster_reads_no_byte_beyond_the_name) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  multicast_broadcaster b = create();
  size_t length;
  CHECK(pages != MAP_FAILED);
  memset(pages, 'n', page);
  CHECK_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  pages[page - 1] = '\0';
  for (length = 1; length <= LONGEST; ++length) {
    const char *name = pages + page - 1 - length;
    observe(b, name, counter(&calls));
    CHECK_EQ(notify(b, name), 1);
    CHECK_OK(multicast_broadcaster_unregister(b, name, counter(&calls)));
    CHECK_EQ(multicast_broadcaster_unregister_all(b, name), 0);
  }
  expect_no_name(b, pages + page - 1);
  CHECK_EQ(munmap(pages, 2 * page), 0);
}

TEST(broadcaster_names_stay_for_its_life) {
  multicast_broadcaster b;
  multicast m;
  int64_t before = 0;
  int i;
  use_test_allocator();
  b = create();
  m = find(b, NAME);
  for (i = 0; i < 10000; ++i) {
    observe(b, NAME, counter(&calls));
    CHECK_EQ(notify(b, NAME), 1);
    CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
    CHECK_EQ(find(b, NAME).id, m.id);
    if (i == 100) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(broadcaster_of_the_same_name_is_another) {
  multicast_broadcaster b = create(), other = create();
  CHECK(b.id != other.id);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(other, NAME), 0);
  CHECK_EQ(notify(multicast_broadcaster_default(), NAME), 0);
  CHECK_STATUS(multicast_broadcaster_unregister(other, NAME, counter(&calls)),
               MULTICAST_ERROR_NOT_FOUND);
  CHECK(find(b, NAME).id != find(other, NAME).id);
  CHECK_OK(multicast_broadcaster_destroy(other));
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_of_100000_names) {
  enum { COUNT = 100000 };
  static int each[COUNT];
  multicast_broadcaster b = create();
  int i;
  for (i = 0; i < COUNT; ++i) observe(b, numbered(NAME, i), counter(&each[i]));
  for (i = 0; i < COUNT; ++i) CHECK_EQ(notify(b, numbered(NAME, i)), 1);
  for (i = 0; i < COUNT; ++i) CHECK_EQ(each[i], 1);
  for (i = 0; i < COUNT; i += 2) {
    CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, i), counter(&each[i])));
  }
  for (i = 0; i < COUNT; ++i) CHECK_EQ(notify(b, numbered(NAME, i)), i % 2);
  for (i = 0; i < COUNT; ++i) CHECK_EQ(each[i], 1 + i % 2);
  CHECK_EQ(notify(b, numbered(NAME, COUNT)), 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_of_many_long_names_that_differ_in_a_few_bytes) {
  enum { COUNT = 20000, DIGITS = 5 };
  static const int places[] = {0, 125, LONGEST - DIGITS};
  char name[LONGEST + 1], digits[16];
  int i, k;
  for (k = 0; k < 3; ++k) {
    multicast_broadcaster b = create();
    memset(name, '-', LONGEST);
    name[LONGEST] = '\0';
    for (i = 0; i < COUNT; ++i) {
      snprintf(digits, sizeof digits, "%05d", i);
      memcpy(name + places[k], digits, DIGITS);
      observe(b, name, counter(&calls));
    }
    for (i = 0; i < COUNT; ++i) {
      snprintf(digits, sizeof digits, "%05d", i);
      memcpy(name + places[k], digits, DIGITS);
      CHECK_EQ(notify(b, name), 1);
    }
    CHECK_OK(multicast_broadcaster_destroy(b));
  }
  CHECK_EQ(calls, 3 * COUNT);
}

/* ---- Options of observers -------------------------------------------------------------------- */

TEST(broadcaster_token_is_that_of_the_registration) {
  multicast_broadcaster b = create();
  multicast_token token = observe(b, NAME, counter(&calls));
  CHECK(multicast_token_is_live(token));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK(!multicast_token_is_live(token));
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, counter(&calls)),
               MULTICAST_ERROR_NOT_FOUND);
  CHECK_OK(multicast_token_remove_nowait(observe(b, NAME, counter(&calls))));
  CHECK_OK(multicast_token_remove_within(observe(b, NAME, counter(&calls)), 0));
  token = observe(b, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_STATUS(multicast_token_remove(token), MULTICAST_ERROR_INVALID_HANDLE);
}

static void remove_itself(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  CHECK_EQ(multicast_token_current().id, *(uint64_t *)context);
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
}

TEST(broadcaster_token_is_current_in_the_call_of_its_observer) {
  multicast_broadcaster b = create();
  multicast_delegate d;
  uint64_t token;
  d.function = remove_itself;
  d.context = &token;
  token = observe(b, NAME, d).id;
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, NAME), 0);
}

TEST(broadcaster_notifies_by_priority_then_by_order_of_registration) {
  char text[16] = "";
  letter a = {text, 'a'}, second = {text, 'b'}, c = {text, 'c'}, d = {text, 'd'};
  multicast_options options = multicast_options_default();
  multicast_broadcaster b = create();
  options.priority = -1;
  observe_with(b, NAME, writer(&d), &options);
  observe(b, NAME, writer(&second));
  observe(b, NAME, writer(&c));
  options.priority = 5;
  observe_with(b, NAME, writer(&a), &options);
  CHECK_EQ(notify(b, NAME), 4);
  CHECK_TEXT(text, "abcd");
}

TEST(broadcaster_notifies_once_who_registers_for_once) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_broadcaster b = create();
  multicast_token token;
  options.flags = MULTICAST_ONCE;
  token = observe_with(b, NAME, observing(&o), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK(o.calls == 1 && o.releases == 1);
  CHECK(!multicast_token_is_live(token));
}

TEST(broadcaster_notifies_of_wanted_events_only) {
  multicast_options options = multicast_options_default();
  multicast_broadcaster b = create();
  options.events = UINT64_C(1) << 3;
  observe_with(b, NAME, counter(&calls), &options);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 2, NULL, 0), 0);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 3, NULL, 0), 1);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 64, NULL, 0), 1);
  CHECK_EQ(calls, 2);
}

TEST(broadcaster_observers_are_gone_from_all_names_when_their_lifetime_ends) {
  enum { NAMES = 20 };
  observer o = {0, 0};
  multicast_broadcaster b = create(), other = create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_options options = with_release(release_observer);
  int i;
  options.lifetime = l;
  for (i = 0; i < NAMES; ++i) {
    observe_with(b, numbered(NAME, i), observing(&o), &options);
    observe_with(other, numbered(NAME, i), observing(&o), &options);
    observe(b, numbered(NAME, i), counter(&calls));
  }
  CHECK_EQ(multicast_lifetime_count(l), 2 * NAMES);
  for (i = 0; i < NAMES; ++i) CHECK_EQ(notify(b, numbered(NAME, i)), 2);
  CHECK_OK(multicast_lifetime_end(l));
  CHECK_EQ(o.releases, 2 * NAMES);
  for (i = 0; i < NAMES; ++i) {
    CHECK_EQ(notify(b, numbered(NAME, i)), 1);
    CHECK_EQ(notify(other, numbered(NAME, i)), 0);
  }
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&o), &options, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(o.releases, 2 * NAMES + 1);
  CHECK_EQ(o.calls, NAMES);
}

static void *lock_observer(void *context) {
  return LOAD(((observer *)context)->releases) == 0 ? context : NULL;
}

static int unlocks;
static void unlock_observer(void *strong) {
  (void)strong;
  ADD(unlocks, 1);
}

TEST(broadcaster_registers_with_options_of_every_kind_at_once) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer), before;
  multicast_broadcaster b = create();
  multicast_lifetime l = multicast_lifetime_create();
  multicast_queue q = create_queue();
  options.flags = MULTICAST_ONCE | MULTICAST_UNIQUE | MULTICAST_LATEST;
  options.priority = INT32_MIN;
  options.events = 1;
  options.lifetime = l;
  options.queue = q;
  options.lock = lock_observer;
  options.unlock = unlock_observer;
  memcpy(&before, &options, sizeof options);
  observe_with(b, NAME, observing(&o), &options);
  CHECK(memcmp(&before, &options, sizeof options) == 0);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 1, NULL, 0), 0);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(o.calls, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 1 && o.releases == 1 && unlocks == 1);
  CHECK_EQ(multicast_lifetime_count(l), 0);
  observe_with(b, NAME, observing(&o), &options); /* dead already, as `lock` will say */
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(o.calls == 1 && o.releases == 2 && unlocks == 1);
}

TEST(broadcaster_register_of_options_that_are_not_valid_is_invalid_argument) {
  observer o = {0, 0};
  multicast_options options;
  multicast_broadcaster b = create();
  int which;
  for (which = 0; which < 4; ++which) {
    multicast_token token = {77};
    options = with_release(release_observer);
    if (which == 0) options.struct_size = 0;
    if (which == 1) options.struct_size = 1025;
    if (which == 2) options.flags = 0x8;
    if (which == 3) options.reserved = 1;
    CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&o), &options, &token),
                 MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(token.id, 0);
  }
  CHECK_EQ(o.releases, 0); /* they could not be read */
  options = with_release(release_observer);
  options.lock = lock_observer;
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&o), &options, NULL),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}

TEST(broadcaster_register_without_a_function_is_invalid_argument_and_releases) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_delegate d;
  multicast_broadcaster b = create();
  multicast_token token = {77};
  d.function = NULL;
  d.context = &o;
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, d, &options, &token),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}

typedef struct newer_options {
  multicast_options known;
  uint64_t unknown[20];
} newer_options;

TEST(broadcaster_registers_for_newer_callers_with_its_queue_or_without) {
  int with_queue;
  for (with_queue = 0; with_queue < 2; ++with_queue) {
    observer o = {0, 0};
    newer_options newer;
    multicast_queue q = create_queue();
    multicast_broadcaster b = with_queue ? create_on(q) : create();
    memset(&newer, 0, sizeof newer);
    newer.known.struct_size = sizeof newer;
    newer.known.release = release_observer;
    observe_with(b, NAME, observing(&o), &newer.known);
    CHECK_EQ(notify(b, NAME), 1);
    CHECK_EQ(o.calls, !with_queue);
    CHECK_EQ(multicast_queue_run(q, 0), with_queue);
    CHECK_EQ(o.calls, 1);
    newer.unknown[19] = 1;
    CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&o), &newer.known, NULL),
                 MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(o.releases, 0);
    CHECK_OK(multicast_broadcaster_destroy(b));
    CHECK_EQ(o.releases, 1);
    CHECK_OK(multicast_queue_destroy(q));
  }
}

/* ---- The multicast of a name ----------------------------------------------------------------- */

TEST(broadcaster_multicast_is_the_same_each_time) {
  multicast_broadcaster b = create();
  multicast m = find(b, NAME);
  int i;
  CHECK(multicast_is_valid(m));
  CHECK_EQ(find(b, NAME).id, m.id);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(find(b, NAME).id, m.id);
  for (i = 0; i < 5000; ++i) CHECK(find(b, numbered(NAME, i)).id != m.id);
  CHECK_EQ(find(b, NAME).id, m.id);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 1);
  CHECK_EQ(find(b, NAME).id, m.id);
}

TEST(broadcaster_multicast_made_before_anyone_registers_reaches_them) {
  multicast_broadcaster b = create();
  multicast m = find(b, NAME);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, counter(&calls)),
               MULTICAST_ERROR_NOT_FOUND);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(calls, 2);
}

TEST(broadcaster_multicast_is_where_observers_register) {
  multicast_broadcaster b = create();
  multicast m = find(b, NAME);
  multicast_token token = observe(b, NAME, counter(&calls));
  CHECK(multicast_contains(m, counter(&calls)));
  CHECK_OK(multicast_remove(m, counter(&calls)));
  CHECK(!multicast_token_is_live(token));
  CHECK_EQ(notify(b, NAME), 0);
  add(m, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_EQ(multicast_count(m), 0);
}

TEST(broadcaster_makes_a_new_multicast_for_one_that_was_destroyed) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_broadcaster b = create();
  multicast old = find(b, NAME), new;
  observe_with(b, NAME, observing(&o), &options);
  CHECK_OK(multicast_destroy(old));
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 0);
  CHECK_STATUS(multicast_broadcaster_unregister(b, NAME, observing(&o)),
               MULTICAST_ERROR_NOT_FOUND);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(calls, 1);
  new = find(b, NAME);
  CHECK(new.id != old.id);
  CHECK_EQ(multicast_invoke(new, 0, NULL, 0), 1);
  CHECK_STATUS(multicast_invoke(old, 0, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_multicast_that_was_destroyed_is_replaced_when_somebody_registers) {
  multicast_broadcaster b = create();
  multicast old = find(b, NAME), new;
  CHECK_OK(multicast_destroy(old));
  CHECK_EQ(find(b, NAME).id, old.id);
  CHECK(!multicast_is_valid(find(b, NAME)));
  observe(b, NAME, counter(&calls));
  new = find(b, NAME);
  CHECK(new.id != old.id);
  CHECK_EQ(multicast_invoke(new, 0, NULL, 0), 1);
}

TEST(broadcaster_whose_multicasts_are_destroyed_again_and_again_takes_no_more_memory) {
  multicast_broadcaster b;
  int64_t before = 0;
  int i;
  use_test_allocator();
  b = create();
  for (i = 0; i < 5000; ++i) {
    observe(b, NAME, counter(&calls));
    CHECK_OK(multicast_destroy(find(b, NAME)));
    if (i == 1000) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
}

/* ---- The end --------------------------------------------------------------------------------- */

TEST(broadcaster_destroyed_takes_all_its_multicasts_along) {
  enum { NAMES = 300 };
  multicast m[NAMES];
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_broadcaster b = create(), other = create();
  multicast_token token = {0};
  int i;
  for (i = 0; i < NAMES; ++i) {
    token = observe_with(b, numbered(NAME, i), observing(&o), &options);
    m[i] = find(b, numbered(NAME, i));
  }
  observe(other, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(o.releases, NAMES);
  for (i = 0; i < NAMES; ++i) CHECK(!multicast_is_valid(m[i]));
  CHECK(!multicast_token_is_live(token));
  expect_stale(b);
  CHECK_EQ(notify(other, NAME), 1);
  CHECK_EQ(o.calls, 0);
}

TEST(broadcaster_destroyed_is_stale_though_another_is_created) {
  multicast_broadcaster old = create();
  int i;
  observe(old, NAME, counter(&calls));
  CHECK_OK(multicast_broadcaster_destroy(old));
  for (i = 0; i < 100; ++i) {
    multicast_broadcaster b = create();
    CHECK(b.id != old.id);
    CHECK_EQ(notify(b, NAME), 0);
    expect_stale(old);
    if (i % 2 == 0) CHECK_OK(multicast_broadcaster_destroy(b));
  }
}

TEST(broadcaster_without_names_can_be_destroyed) {
  multicast_broadcaster b = create();
  CHECK_OK(multicast_broadcaster_destroy(b));
  expect_stale(b);
}

static multicast_broadcaster ending;
static multicast ending_multicast;

static void destroy_in_call(void *context, uint32_t event, const void *payload, size_t size) {
  observer *o = context;
  (void)event;
  (void)payload;
  (void)size;
  ADD(o->calls, 1);
  CHECK_STATUS(multicast_broadcaster_destroy(ending), MULTICAST_PENDING);
  CHECK_EQ(o->releases, 0);
  expect_stale(ending);
  CHECK(!multicast_is_valid(ending_multicast));
}

TEST(broadcaster_destroyed_inside_an_observers_call_is_pending) {
  observer o = {0, 0}, later = {0, 0}, elsewhere = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_delegate d;
  ending = create();
  d.function = destroy_in_call;
  d.context = &o;
  observe_with(ending, NAME, d, &options);
  observe_with(ending, NAME, observing(&later), &options);
  observe_with(ending, "Other", observing(&elsewhere), &options);
  ending_multicast = find(ending, NAME);
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK(o.calls == 1 && o.releases == 1);
  CHECK(later.calls == 0 && later.releases == 1);
  CHECK(elsewhere.calls == 0 && elsewhere.releases == 1);
  expect_stale(ending);
}

TEST(broadcaster_destroyed_inside_a_call_from_its_queue_is_pending) {
  observer o = {0, 0}, later = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_queue q = create_queue();
  multicast_delegate d;
  ending = create_on(q);
  d.function = destroy_in_call;
  d.context = &o;
  observe_with(ending, NAME, d, &options);
  observe_with(ending, NAME, observing(&later), &options);
  ending_multicast = find(ending, NAME);
  CHECK_EQ(notify(ending, NAME), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 1 && o.releases == 1);
  CHECK(later.calls == 0 && later.releases == 1);
  CHECK_OK(multicast_queue_destroy(q));
}

/* Threads that notify of a name each, and one that waits for them in some way. */
static gate has_returned = GATE_INIT;
static int64_t waited_result;

static void *notify_name(void *name) {
  CHECK_EQ(notify(ending, name), 1);
  return NULL;
}

static void *destroy_ending(void *unused) {
  (void)unused;
  waited_result = multicast_broadcaster_destroy(ending);
  gate_open(&has_returned);
  return NULL;
}

static char first_name[] = "First", second_name[] = "Second";

TEST(broadcaster_destroy_waits_for_calls_of_all_names_on_other_threads) {
  blocker first = BLOCKER_INIT, second = BLOCKER_INIT;
  multicast_options options = with_release(release_blocker);
  pthread_t notifiers[2], destroyer;
  ending = create();
  observe_with(ending, first_name, blocking(&first), &options);
  observe_with(ending, second_name, blocking(&second), &options);
  notifiers[0] = start_thread(notify_name, first_name);
  notifiers[1] = start_thread(notify_name, second_name);
  gate_wait(&first.entered);
  gate_wait(&second.entered);
  destroyer = start_thread(destroy_ending, NULL);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  gate_open(&first.let_go);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  CHECK(!LOAD(second.has_left));
  gate_open(&second.let_go);
  gate_wait(&has_returned);
  CHECK_OK(waited_result);
  CHECK(LOAD(first.has_left) && LOAD(second.has_left));
  CHECK(LOAD(first.releases) == 1 && LOAD(second.releases) == 1);
  join_thread(destroyer);
  join_thread(notifiers[0]);
  join_thread(notifiers[1]);
}

TEST(broadcaster_is_stale_while_its_destroy_waits) {
  blocker b = BLOCKER_INIT;
  pthread_t notifier, destroyer;
  ending = create();
  observe(ending, first_name, blocking(&b));
  notifier = start_thread(notify_name, first_name);
  gate_wait(&b.entered);
  destroyer = start_thread(destroy_ending, NULL);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  CHECK_STATUS(notify(ending, first_name), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_register(ending, NAME, counter(&calls), NULL, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(ending, first_name).id, 0);
  gate_open(&b.let_go);
  join_thread(destroyer);
  join_thread(notifier);
  CHECK_OK(waited_result);
}

static blocker unregistered = BLOCKER_INIT;

static void *unregister_blocker(void *unused) {
  (void)unused;
  waited_result = multicast_broadcaster_unregister(ending, first_name, blocking(&unregistered));
  gate_open(&has_returned);
  return NULL;
}

static void *unregister_all_blockers(void *unused) {
  (void)unused;
  waited_result = multicast_broadcaster_unregister_all(ending, first_name);
  gate_open(&has_returned);
  return NULL;
}

static void expect_to_wait_for_the_call(void *(*body)(void *), int64_t result) {
  pthread_t notifier, waiter;
  ending = create();
  observe(ending, first_name, blocking(&unregistered));
  notifier = start_thread(notify_name, first_name);
  gate_wait(&unregistered.entered);
  waiter = start_thread(body, NULL);
  CHECK(!gate_opens_within(&has_returned, A_WHILE_MS));
  gate_open(&unregistered.let_go);
  gate_wait(&has_returned);
  CHECK(LOAD(unregistered.has_left));
  CHECK_STATUS(waited_result, result);
  join_thread(waiter);
  join_thread(notifier);
}

TEST(broadcaster_unregister_waits_for_the_call_on_another_thread) {
  expect_to_wait_for_the_call(unregister_blocker, MULTICAST_OK);
}

TEST(broadcaster_unregister_all_waits_for_the_call_on_another_thread) {
  expect_to_wait_for_the_call(unregister_all_blockers, 1);
}

static void unregister_itself(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_delegate d;
  (void)event;
  (void)payload;
  (void)size;
  d.function = unregister_itself;
  d.context = context;
  CHECK_STATUS(multicast_broadcaster_unregister(ending, NAME, d), MULTICAST_PENDING);
  CHECK_EQ(((observer *)context)->releases, 0);
}

TEST(broadcaster_unregister_inside_its_own_call_is_pending) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_delegate d;
  d.function = unregister_itself;
  d.context = &o;
  ending = create();
  observe_with(ending, NAME, d, &options);
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(ending, NAME), 0);
}

static void do_anything(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_broadcaster b;
  (void)payload;
  (void)size;
  ADD(*(int *)context, 1);
  if (event > 0) return;
  b = create();
  observe(b, NAME, counter(context));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  observe(ending, "New", counter(context));
  observe(ending, NAME, counter(context)); /* not called by this notification */
  CHECK_EQ(notify(ending, "New"), 1);
  CHECK_EQ(multicast_broadcaster_notify(ending, NAME, 1, NULL, 0), 2);
  CHECK_EQ(multicast_broadcaster_unregister_all(ending, "New"), 1);
}

TEST(broadcaster_may_be_used_in_every_way_inside_an_observers_call) {
  multicast_delegate d;
  d.function = do_anything;
  d.context = &calls;
  ending = create();
  observe(ending, NAME, d);
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK_EQ(calls, 5);
}

static void use_in_release(void *context) {
  multicast_broadcaster b = *(multicast_broadcaster *)context;
  CHECK_EQ(notify(b, NAME), 0);
  observe(b, "Other", counter(&calls));
  CHECK_EQ(notify(b, "Other"), 1);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, "Other"), 1);
}

TEST(broadcaster_may_be_used_inside_a_release) {
  multicast_broadcaster b = create();
  multicast_options options = with_release(use_in_release);
  multicast_delegate d;
  d.function = count_call;
  d.context = &b;
  observe_with(b, NAME, d, &options);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, d));
  CHECK_EQ(calls, 1);
  CHECK_STATUS(multicast_broadcaster_register(b, "", d, &options, NULL),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(calls, 2);
}

static void nest(void *context, uint32_t event, const void *payload, size_t size) {
  int64_t result;
  (void)payload;
  (void)size;
  ADD(*(int *)context, 1);
  result = multicast_broadcaster_notify(ending, NAME, event + 1, NULL, 0);
  if (event < 255) {
    CHECK_EQ(result, 1);
  } else {
    CHECK_STATUS(result, MULTICAST_ERROR_LIMIT);
  }
}

TEST(broadcaster_notifications_nested_too_deep_are_limit) {
  multicast_delegate d;
  d.function = nest;
  d.context = &calls;
  ending = create();
  observe(ending, NAME, d);
  CHECK_EQ(notify(ending, NAME), 1);
  CHECK_EQ(calls, 256);
}

/* ---- The broadcaster of the process ---------------------------------------------------------- */

TEST(broadcaster_default_is_the_same_each_time_and_needs_no_set_up) {
  multicast_broadcaster b = multicast_broadcaster_default(), other;
  CHECK(b.id != 0);
  observe(b, NAME, counter(&calls));
  other = create();
  CHECK(other.id != b.id);
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
  CHECK_EQ(notify(multicast_broadcaster_default(), NAME), 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_broadcaster_destroy(other));
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
}

TEST(broadcaster_default_calls_observers_on_the_notifying_thread_or_where_they_say) {
  multicast_broadcaster b = multicast_broadcaster_default();
  multicast_options options = multicast_options_default();
  multicast_queue q = create_queue();
  int queued = 0;
  options.queue = q;
  observe(b, NAME, counter(&calls));
  observe_with(b, NAME, counter(&queued), &options);
  CHECK_EQ(notify(b, NAME), 2);
  CHECK(calls == 1 && queued == 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(queued, 1);
}

TEST(broadcaster_default_cannot_be_destroyed_and_goes_on_working) {
  multicast_broadcaster b = multicast_broadcaster_default();
  multicast m = find(b, NAME);
  observe(b, NAME, counter(&calls));
  CHECK_STATUS(multicast_broadcaster_destroy(b), MULTICAST_ERROR_STATE);
  CHECK_STATUS(multicast_broadcaster_destroy(b), MULTICAST_ERROR_STATE);
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
  CHECK_EQ(find(b, NAME).id, m.id);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 0);
}

static gate all_ready = GATE_INIT;

static void *get_default(void *id) {
  gate_wait(&all_ready);
  *(uint64_t *)id = multicast_broadcaster_default().id;
  CHECK_OK(multicast_broadcaster_register(multicast_broadcaster_default(), NAME, counter(&calls),
                                          NULL, NULL));
  return NULL;
}

static void get_default_from_several_threads(void *unused) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  uint64_t ids[THREADS] = {0};
  int i;
  (void)unused;
  for (i = 0; i < THREADS; ++i) threads[i] = start_thread(get_default, &ids[i]);
  pause_ms(1);
  gate_open(&all_ready);
  for (i = 0; i < THREADS; ++i) join_thread(threads[i]);
  CHECK(ids[0] != 0);
  for (i = 1; i < THREADS; ++i) CHECK_EQ(ids[i], ids[0]);
  CHECK_EQ(notify(multicast_broadcaster_default(), NAME), THREADS);
}

TEST(broadcaster_default_is_the_same_for_threads_that_ask_first_at_once) {
  int i;
  for (i = 0; i < 25; ++i) in_child(get_default_from_several_threads, NULL);
}

TEST(broadcaster_default_out_of_memory_is_the_null_handle_and_works_later) {
  multicast_broadcaster b = {0};
  int which;
  use_test_allocator();
  for (which = 0; b.id == 0; ++which) {
    CHECK(which < 1000);
    fail_after = which;
    b = multicast_broadcaster_default();
    fail_after = -1;
  }
  CHECK(which > 1);
  CHECK_EQ(multicast_broadcaster_default().id, b.id);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
}

/* ---- Options, and the broadcaster's queue ---------------------------------------------------- */

static void expect_none_created(const multicast_broadcaster_options *options) {
  CHECK_EQ(multicast_broadcaster_create(options).id, 0);
}

TEST(broadcaster_options_of_a_bad_struct_size_create_none) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  uint32_t size;
  for (size = 0; size < sizeof options; ++size) {
    options.struct_size = size;
    expect_none_created(&options);
  }
  options.struct_size = 1025;
  expect_none_created(&options);
  options.struct_size = UINT32_MAX;
  expect_none_created(&options);
}

TEST(broadcaster_options_of_a_newer_caller_are_fine_if_the_rest_is_zero) {
  struct {
    multicast_broadcaster_options known;
    uint64_t unknown[20];
  } newer;
  multicast_broadcaster b;
  multicast_queue q = create_queue();
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  newer.known.queue = q;
  b = multicast_broadcaster_create(&newer.known);
  CHECK(b.id != 0);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  newer.unknown[19] = UINT64_C(1) << 56;
  expect_none_created(&newer.known);
}

TEST(broadcaster_options_with_flags_create_none) {
  int bit;
  for (bit = 0; bit < 32; ++bit) {
    multicast_broadcaster_options options = multicast_broadcaster_options_default();
    options.flags = 1u << bit;
    expect_none_created(&options);
  }
}

TEST(broadcaster_options_with_a_queue_that_is_none_create_none) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  multicast_queue gone = create_queue(), kept = create_queue();
  int bit;
  CHECK_OK(multicast_queue_destroy(gone));
  options.queue = gone;
  expect_none_created(&options);
  for (bit = 0; bit < 64; ++bit) {
    options.queue.id = kept.id ^ (UINT64_C(1) << bit);
    expect_none_created(&options);
  }
  options.queue.id = multicast_create().id;
  expect_none_created(&options);
  options.queue.id = multicast_lifetime_create().id;
  expect_none_created(&options);
  options.queue.id = create().id;
  expect_none_created(&options);
  options.queue = kept;
  CHECK(multicast_broadcaster_create(&options).id != 0);
}

TEST(broadcaster_options_init_fills_in_defaults_and_refuses_other_sizes) {
  union {
    multicast_broadcaster_options options;
    unsigned char bytes[256];
  } newer;
  multicast_broadcaster_options inlined = multicast_broadcaster_options_default();
  memset(&newer, 0xFF, sizeof newer);
  CHECK_STATUS(multicast_broadcaster_options_init(&newer.options, 15),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_broadcaster_options_init(&newer.options, 1025),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_broadcaster_options_init(NULL, 16), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(newer.options.struct_size, UINT32_MAX);
  CHECK_OK(multicast_broadcaster_options_init(&newer.options, sizeof newer.options));
  CHECK(memcmp(&newer.options, &inlined, sizeof inlined) == 0);
  CHECK_OK(multicast_broadcaster_options_init(&newer.options, 200));
  CHECK_EQ(newer.options.struct_size, 200);
  CHECK_EQ(newer.bytes[199], 0);
  CHECK_EQ(newer.bytes[200], 0xFF);
}

TEST(broadcaster_options_are_read_during_the_call_only) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  multicast_broadcaster b;
  multicast_queue q = create_queue();
  options.queue = q;
  b = multicast_broadcaster_create(&options);
  memset(&options, 0xFF, sizeof options);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST(broadcaster_queue_gets_the_calls_of_observers_that_name_none) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  multicast_options options = multicast_options_default();
  int with_defaults = 0, with_options = 0, with_queue = 0;
  observe(b, NAME, counter(&with_defaults));
  observe_with(b, NAME, counter(&with_options), &options);
  options.queue = own;
  observe_with(b, NAME, counter(&with_queue), &options);
  CHECK_EQ(notify(b, NAME), 3);
  CHECK(with_defaults == 0 && with_options == 0 && with_queue == 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK(with_defaults == 0 && with_options == 0 && with_queue == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK(with_defaults == 1 && with_options == 1 && with_queue == 1);
}

TEST(broadcaster_without_a_queue_calls_at_once_but_for_observers_with_one) {
  multicast_queue own = create_queue();
  multicast_broadcaster b = create();
  multicast_options options = multicast_options_default();
  int direct = 0, queued = 0;
  options.queue = own;
  observe(b, NAME, counter(&direct));
  observe_with(b, NAME, counter(&queued), &options);
  CHECK_EQ(notify(b, NAME), 2);
  CHECK(direct == 1 && queued == 0);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK_EQ(queued, 1);
}

TEST(broadcaster_queue_is_not_for_what_is_added_to_the_multicast_itself) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  int added = 0, registered = 0;
  add(find(b, NAME), counter(&added));
  observe(b, NAME, counter(&registered));
  CHECK_EQ(multicast_invoke(find(b, NAME), 0, NULL, 0), 2);
  CHECK(added == 1 && registered == 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(registered, 1);
}

TEST(broadcaster_queue_does_not_call_who_has_unregistered) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  observe_with(b, NAME, observing(&o), &options);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_OK(multicast_broadcaster_unregister(b, NAME, observing(&o)));
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 0 && calls == 1);
}

TEST(broadcaster_queue_does_not_call_when_the_broadcaster_is_destroyed_and_stays) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q), next;
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  observe_with(b, NAME, observing(&o), &options);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 0, payload_sent, sizeof payload_sent), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK(o.calls == 0 && o.releases == 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  next = create_on(q);
  observe(next, NAME, counter(&calls));
  CHECK_EQ(notify(next, NAME), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(o.calls == 0 && calls == 1);
}

static uint32_t last_event;
static char last_title[200];
static size_t last_size;

static void keep_title(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  last_event = event;
  last_size = size;
  CHECK(size <= sizeof last_title);
  memcpy(last_title, payload, size);
}

TEST(broadcaster_queue_copies_the_payload) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  char title[200], sent[200];
  multicast_delegate d;
  d.function = keep_title;
  d.context = &calls;
  memset(title, 't', sizeof title);
  memcpy(sent, title, sizeof title);
  observe(b, NAME, d);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 7, title, sizeof title), 1);
  memset(title, 0, sizeof title);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(last_event == 7 && last_size == sizeof sent);
  CHECK(memcmp(last_title, sent, sizeof sent) == 0);
}

TEST(broadcaster_queue_keeps_the_newest_call_of_who_wants_the_latest) {
  multicast_queue q = create_queue();
  multicast_broadcaster b = create_on(q);
  multicast_options options = multicast_options_default();
  multicast_delegate d;
  d.function = keep_title;
  d.context = &calls;
  options.flags = MULTICAST_LATEST;
  observe_with(b, NAME, d, &options);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 1, "first", 6), 1);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 2, "second", 7), 1);
  CHECK_EQ(multicast_broadcaster_notify(b, NAME, 3, "last", 5), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_EQ(last_event, 3);
  CHECK_TEXT(last_title, "last");
}

TEST(broadcaster_whose_queue_is_destroyed_registers_none_without_a_queue) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  observer before = {0, 0}, after = {0, 0}, elsewhere = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_token token = {77};
  observe_with(b, NAME, observing(&before), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK(before.calls == 0 && before.releases == 1);
  CHECK_EQ(notify(b, NAME), 0);
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&after), &options, &token),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK(after.calls == 0 && after.releases == 1);
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, counter(&calls), NULL, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_register(b, "New", counter(&calls), NULL, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  options.queue = own;
  observe_with(b, NAME, observing(&elsewhere), &options);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_queue_run(own, 0), 1);
  CHECK_EQ(elsewhere.calls, 1);
  add(find(b, NAME), counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(elsewhere.releases, 1);
}

TEST(broadcaster_registers_none_with_a_queue_of_their_own_that_is_destroyed) {
  multicast_queue q = create_queue(), own = create_queue();
  multicast_broadcaster b = create_on(q);
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_token token = {77};
  CHECK_OK(multicast_queue_destroy(own));
  options.queue = own;
  CHECK_STATUS(multicast_broadcaster_register(b, NAME, observing(&o), &options, &token),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_EQ(notify(b, NAME), 0);
}

/* ---- Bad handles ----------------------------------------------------------------------------- */

static void expect_no_broadcaster(uint64_t id) {
  multicast_broadcaster b;
  b.id = id;
  expect_stale(b);
}

TEST(broadcaster_of_null_is_invalid_before_anything_exists) { expect_no_broadcaster(0); }

TEST(broadcaster_of_null_is_invalid) {
  create();
  expect_no_broadcaster(0);
}

TEST(broadcaster_handles_of_another_kind_are_invalid) {
  multicast m = multicast_create();
  multicast_broadcaster b = create();
  multicast_token token = observe(b, NAME, counter(&calls));
  multicast_queue as_queue;
  multicast as_multicast;
  multicast_token as_token;
  multicast_lifetime as_lifetime;
  expect_no_broadcaster(m.id);
  expect_no_broadcaster(token.id);
  expect_no_broadcaster(find(b, NAME).id);
  expect_no_broadcaster(multicast_lifetime_create().id);
  expect_no_broadcaster(create_queue().id);
  as_multicast.id = as_token.id = as_lifetime.id = as_queue.id = b.id;
  CHECK(!multicast_is_valid(as_multicast));
  CHECK_STATUS(multicast_invoke(as_multicast, 0, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_destroy(as_multicast), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(!multicast_token_is_live(as_token));
  CHECK_STATUS(multicast_token_remove(as_token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_lifetime_end(as_lifetime), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_run(as_queue, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_destroy(as_queue), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_handles_that_are_forged_are_invalid) {
  multicast_broadcaster b = create();
  multicast_token token = observe(b, NAME, counter(&calls));
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  int bit, i;
  CHECK_OK(multicast_broadcaster_destroy(create())); /* a vacant slot is there, too */
  expect_no_broadcaster(UINT64_MAX);
  for (bit = 0; bit < 64; ++bit) {
    expect_no_broadcaster(b.id ^ (UINT64_C(1) << bit));
    expect_no_broadcaster(UINT64_C(1) << bit);
  }
  for (i = 0; i < 20000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random != b.id) expect_no_broadcaster(random);
  }
  for (i = 0; i < 4096; ++i) {
    expect_no_broadcaster((random & ~UINT64_C(0x3FFFFFFF)) | (uint64_t)i);
    expect_no_broadcaster((uint64_t)i);
  }
  for (i = 0; i < 16; ++i) { /* the kind: four bits above the index */
    uint64_t id = (b.id & ~(UINT64_C(15) << 26)) | (uint64_t)i << 26;
    if (id != b.id) expect_no_broadcaster(id);
  }
  CHECK(multicast_token_is_live(token));
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_default_is_not_reached_by_forged_handles) {
  multicast_broadcaster b = multicast_broadcaster_default();
  int bit;
  observe(b, NAME, counter(&calls));
  for (bit = 0; bit < 64; ++bit) expect_no_broadcaster(b.id ^ (UINT64_C(1) << bit));
  CHECK_EQ(notify(b, NAME), 1);
}

TEST(broadcaster_with_a_bad_handle_and_a_bad_name_is_an_error) {
  static const multicast_broadcaster none = {0};
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  CHECK(multicast_broadcaster_register(none, NULL, observing(&o), &options, NULL) < 0);
  CHECK_EQ(o.releases, 1);
  CHECK(multicast_broadcaster_unregister(none, NULL, observing(&o)) < 0);
  CHECK(multicast_broadcaster_unregister_all(none, NULL) < 0);
  CHECK(notify(none, NULL) < 0);
  CHECK_EQ(multicast_broadcaster_multicast(none, NULL).id, 0);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* What is done with each allocation failing in turn: alone, then with all that follow it. */
static void fail_each_allocation(void (*attempt)(void)) {
  int mode, which;
  use_test_allocator();
  for (mode = 0; mode < 2; ++mode) {
    fail_only_once = mode == 0;
    for (which = 0, has_failed = true; has_failed; ++which) {
      CHECK(which < 10000);
      has_failed = false;
      fail_after = which;
      attempt();
      fail_after = -1;
    }
  }
}

/* What the allocator is told to do is put off where a test needs to know how things are. */
static int put_off(void) {
  int after = fail_after;
  fail_after = -1;
  return after;
}

static void try_create(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  put_off();
  CHECK((b.id != 0) == !has_failed);
  if (b.id != 0) CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_create_out_of_memory_is_the_null_handle) {
  fail_each_allocation(try_create);
}

static void try_register(void) {
  enum { NAMES = 40 };
  static observer each[NAMES];
  multicast_options options = with_release(release_observer);
  multicast_status status = MULTICAST_OK;
  multicast_broadcaster b;
  int after = put_off(), i;
  b = create();
  memset(each, 0, sizeof each);
  for (i = 0; i < NAMES && status == MULTICAST_OK; ++i) {
    multicast_token token = {77};
    fail_after = after;
    status = multicast_broadcaster_register(b, numbered(NAME, i), observing(&each[i]),
                                            &options, &token);
    after = put_off();
    if (status != MULTICAST_OK) {
      CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
      CHECK_EQ(token.id, 0);
      CHECK_EQ(each[i].releases, 1);
      CHECK_EQ(notify(b, numbered(NAME, i)), 0);
      observe_with(b, numbered(NAME, i), observing(&each[i]), &options);
    }
    CHECK_EQ(notify(b, numbered(NAME, i)), 1);
    CHECK_EQ(each[i].calls, 1);
  }
  if (!has_failed) CHECK_OK(status);
  CHECK_OK(multicast_broadcaster_destroy(b));
  if (status != MULTICAST_OK) CHECK_EQ(each[i - 1].releases, 2);
}

TEST(broadcaster_register_out_of_memory_changes_nothing_and_releases) {
  fail_each_allocation(try_register);
}

static void try_multicast(void) {
  enum { NAMES = 40 };
  multicast_broadcaster b;
  int after = put_off(), i;
  b = create();
  for (i = 0; i < NAMES; ++i) {
    multicast m;
    fail_after = after;
    m = multicast_broadcaster_multicast(b, numbered(NAME, i));
    after = put_off();
    if (m.id == 0) {
      CHECK(has_failed);
      CHECK_EQ(notify(b, numbered(NAME, i)), 0);
      m = find(b, numbered(NAME, i));
    }
    CHECK(multicast_is_valid(m));
    CHECK_EQ(find(b, numbered(NAME, i)).id, m.id);
  }
  CHECK_OK(multicast_broadcaster_destroy(b));
}

TEST(broadcaster_multicast_out_of_memory_is_the_null_handle) {
  fail_each_allocation(try_multicast);
}

static multicast_broadcaster shared;
static int64_t first_result;

static void *notify_for_the_first_time(void *unused) {
  (void)unused;
  first_result = notify(shared, NAME);
  return NULL;
}

TEST(broadcaster_notify_out_of_memory_is_possible_at_the_first_of_a_thread_only) {
  use_test_allocator();
  shared = create();
  observe(shared, NAME, counter(&calls));
  fail_only_once = false;
  fail_after = 0;
  on_another_thread(notify_for_the_first_time, NULL);
  CHECK_STATUS(first_result, MULTICAST_ERROR_OUT_OF_MEMORY);
  fail_after = -1;
  on_another_thread(notify_for_the_first_time, NULL);
  CHECK_EQ(first_result, 1);
  CHECK_EQ(notify(shared, NAME), 1);
  has_failed = false;
  fail_after = 0;
  CHECK_EQ(notify(shared, NAME), 1);
  CHECK_EQ(notify(shared, "Other"), 0);
  CHECK(!has_failed);
  CHECK_EQ(calls, 3);
}

TEST(broadcaster_unregister_and_destroy_need_no_memory) {
  enum { NAMES = 100 };
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_broadcaster b;
  int i;
  use_test_allocator();
  b = create();
  for (i = 0; i < NAMES; ++i) {
    observe_with(b, numbered(NAME, i), observing(&o), &options);
    observe_with(b, numbered(NAME, i), observing(&o), &options);
    observe_with(b, numbered(NAME, i), observing(&o), &options);
  }
  fail_only_once = false;
  fail_after = 0;
  for (i = 0; i < NAMES; ++i) {
    CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, i), observing(&o)));
    if (i % 2 == 0) {
      CHECK_EQ(multicast_broadcaster_unregister_all(b, numbered(NAME, i)), 2);
    }
  }
  CHECK_OK(multicast_broadcaster_destroy(b));
  fail_after = -1;
  CHECK_EQ(o.releases, 3 * NAMES);
}

TEST(broadcaster_register_out_of_memory_again_and_again_leaks_nothing) {
  int after, i;
  multicast_broadcaster b;
  use_test_allocator();
  b = create();
  for (after = 0; after < 12; ++after) {
    int64_t before = 0;
    for (i = 0; i < 500; ++i) {
      observer o = {0, 0};
      multicast_options options = with_release(release_observer);
      multicast_status status;
      fail_after = after;
      status = multicast_broadcaster_register(b, numbered(NAME, after), observing(&o),
                                              &options, NULL);
      fail_after = -1;
      if (status == MULTICAST_OK) {
        CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, after), observing(&o)));
      } else {
        CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
      }
      CHECK_EQ(o.releases, 1);
      if (i == 100) before = allocated_bytes;
    }
    CHECK_EQ(allocated_bytes, before);
  }
}

TEST(broadcaster_of_a_new_name_out_of_memory_leaks_nothing) {
  enum { ATTEMPTS = 20000, LAST = 15000 };
  multicast_broadcaster b;
  int64_t before = 0;
  int i, failures = 0;
  use_test_allocator();
  b = create();
  fail_only_once = false;
  fail_after = 0;
  for (i = 0; i < ATTEMPTS; ++i) { /* the first ones may find room that was taken before */
    if (multicast_broadcaster_multicast(b, numbered(NAME, i)).id == 0) ++failures;
    if (i == LAST) {
      before = allocated_bytes;
      failures = 0;
    }
  }
  fail_after = -1;
  CHECK_EQ(allocated_bytes, before);
  CHECK_EQ(failures, ATTEMPTS - LAST - 1);
  CHECK(find(b, NAME).id != 0);
}

TEST(broadcaster_rounds_of_everything_leak_nothing) {
  enum { ROUNDS = 200, NAMES = 150 };
  int64_t before = 0;
  int round, i;
  use_test_allocator();
  for (round = 0; round < ROUNDS; ++round) {
    observer o = {0, 0};
    multicast_options options = with_release(release_observer);
    multicast_queue q = create_queue();
    multicast_broadcaster b = round % 2 == 0 ? create() : create_on(q);
    for (i = 0; i < NAMES; ++i) {
      const char *name = numbered(NAME, i);
      CHECK(find(b, name).id != 0);
      observe_with(b, name, observing(&o), &options);
      observe_with(b, name, observing(&o), &options);
      CHECK_EQ(multicast_broadcaster_notify(b, name, 0, last_title, sizeof last_title), 2);
    }
    CHECK(multicast_queue_run(q, 17) >= 0);
    for (i = 0; i < NAMES; i += 3) {
      CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, i), observing(&o)));
      CHECK_EQ(multicast_broadcaster_unregister_all(b, numbered(NAME, i + 1)), 2);
      CHECK_OK(multicast_destroy(find(b, numbered(NAME, i + 2))));
    }
    CHECK_OK(multicast_broadcaster_destroy(b));
    CHECK_EQ(o.releases, 2 * NAMES);
    CHECK_OK(multicast_queue_destroy(q));
    if (round == 20) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(broadcaster_create_takes_memory_from_the_allocator) {
  multicast_allocator allocator = multicast_allocator_default();
  create();
  allocator.allocate = (void *(*)(void *, size_t, size_t))(uintptr_t)1;
  allocator.deallocate = (void (*)(void *, void *, size_t, size_t))(uintptr_t)1;
  CHECK_STATUS(multicast_set_allocator(&allocator), MULTICAST_ERROR_STATE);
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* An allocator that, when told to, looks up a name on another thread: whatever lock the library
 * holds while it makes a new one. */
static int lookups_to_make;
static void *(*lookup)(void *);
static uint64_t id_to_find;

static void *look_up_there(void *unused) {
  (void)unused;
  CHECK_EQ(notify(shared, NAME), 1);
  CHECK_EQ(notify(shared, "Unknown"), 0);
  CHECK_EQ(find(shared, NAME).id, id_to_find);
  return NULL;
}

static void *find_there(void *unused) {
  (void)unused;
  CHECK_EQ(find(shared, NAME).id, id_to_find);
  return NULL;
}

static void *allocate_and_look_up(void *context, size_t size, size_t alignment) {
  void *block = NULL;
  (void)context;
  if (lookups_to_make > 0) {
    int left = lookups_to_make - 1;
    lookups_to_make = 0;
    on_another_thread(lookup, NULL);
    lookups_to_make = left;
  }
  return posix_memalign(&block, alignment < 16 ? 16 : alignment, size) == 0 ? block : NULL;
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  (void)context;
  (void)size;
  (void)alignment;
  free(block);
}

static void look_up_in_every_allocation(void *(*body)(void *)) {
  multicast_allocator allocator = multicast_allocator_default();
  int i;
  allocator.allocate = allocate_and_look_up;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
  shared = create();
  observe(shared, NAME, counter(&calls));
  id_to_find = find(shared, NAME).id;
  CHECK_EQ(notify(shared, NAME), 1);
  on_another_thread(look_up_there, NULL); /* leaves a record for the next one */
  lookup = body;
  lookups_to_make = 200;
  for (i = 0; i < 2000; ++i) CHECK(find(shared, numbered(NAME, i)).id != 0);
  CHECK(lookups_to_make < 200);
  lookups_to_make = 0;
}

TEST(broadcaster_lookups_take_no_lock) { look_up_in_every_allocation(look_up_there); }

TEST(broadcaster_multicast_takes_no_lock_on_a_thread_that_has_never_invoked) {
  look_up_in_every_allocation(find_there);
}

enum { SHARED_NAMES = 8 };
static char shared_names[SHARED_NAMES][32];
static bool is_over;

static unsigned next(unsigned *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 16;
}

typedef struct worker {
  unsigned seed;
  observer own;
  int registered;
  uint64_t padding[8]; /* the next one's is on another cache line */
} worker;

static void *register_notify_unregister(void *argument) {
  worker *w = argument;
  multicast_options options = with_release(release_observer);
  int i;
  for (i = 0; i < 1500; ++i) {
    const char *name = shared_names[next(&w->seed) % SHARED_NAMES];
    int before = LOAD(w->own.calls);
    observe_with(shared, name, observing(&w->own), &options);
    CHECK(notify(shared, name) >= 1);
    CHECK(LOAD(w->own.calls) > before);
    CHECK_OK(multicast_broadcaster_unregister(shared, name, observing(&w->own)));
    CHECK_EQ(LOAD(w->own.releases), ++w->registered);
  }
  return NULL;
}

static void *look_up_all_the_time(void *unused) {
  uint64_t ids[SHARED_NAMES] = {0};
  int i;
  (void)unused;
  while (!LOAD(is_over)) {
    for (i = 0; i < SHARED_NAMES; ++i) {
      multicast m = find(shared, shared_names[i]);
      if (ids[i] == 0) ids[i] = m.id;
      CHECK_EQ(m.id, ids[i]);
      CHECK(multicast_count(m) >= 0);
    }
  }
  return NULL;
}

static void name_the_shared(void) {
  int i;
  for (i = 0; i < SHARED_NAMES; ++i) strcpy(shared_names[i], numbered(NAME, i));
}

TEST(broadcaster_used_by_four_threads_under_the_same_names_while_one_looks_up) {
  static worker workers[4];
  pthread_t threads[4], looker;
  int i;
  name_the_shared();
  shared = create();
  for (i = 0; i < 4; ++i) {
    workers[i].seed = (unsigned)i;
    threads[i] = start_thread(register_notify_unregister, &workers[i]);
  }
  looker = start_thread(look_up_all_the_time, NULL);
  for (i = 0; i < 4; ++i) join_thread(threads[i]);
  STORE(is_over, true);
  join_thread(looker);
  for (i = 0; i < SHARED_NAMES; ++i) CHECK_EQ(notify(shared, shared_names[i]), 0);
  CHECK_OK(multicast_broadcaster_destroy(shared));
}

static void *use_every_function(void *argument) {
  worker *w = argument;
  multicast_options options = with_release(release_observer);
  int i;
  for (i = 0; i < 1500; ++i) {
    const char *name = shared_names[next(&w->seed) % SHARED_NAMES];
    multicast_status status;
    multicast_token token = {0};
    multicast m;
    switch (next(&w->seed) % 10) {
      case 0: case 1: case 2: case 3:
        CHECK_OK(multicast_broadcaster_register(shared, name, observing(&w->own), &options,
                                                &token));
        ++w->registered;
        if (i % 3 == 0) multicast_token_remove(token);
        break;
      case 4: case 5:
        status = multicast_broadcaster_unregister(shared, name, observing(&w->own));
        if (status != MULTICAST_ERROR_NOT_FOUND) CHECK_OK(status);
        break;
      case 6:
        CHECK(multicast_broadcaster_unregister_all(shared, name) >= 0);
        break;
      case 7:
        m = find(shared, name);
        if (i % 4 == 0) {
          status = multicast_destroy(m);
          if (status != MULTICAST_ERROR_INVALID_HANDLE) CHECK_OK(status);
        }
        break;
      default:
        CHECK(notify(shared, name) >= 0);
        break;
    }
  }
  return NULL;
}

TEST(broadcaster_every_function_from_four_threads_at_once) {
  static worker workers[4];
  pthread_t threads[4];
  int i;
  name_the_shared();
  shared = create();
  for (i = 0; i < 4; ++i) {
    workers[i].seed = (unsigned)i;
    threads[i] = start_thread(use_every_function, &workers[i]);
  }
  for (i = 0; i < 4; ++i) join_thread(threads[i]);
  CHECK_OK(multicast_broadcaster_destroy(shared));
  for (i = 0; i < 4; ++i) CHECK_EQ(LOAD(workers[i].own.releases), workers[i].registered);
}

static void *destroy_the_multicast(void *unused) {
  (void)unused;
  while (!LOAD(is_over)) {
    multicast_status status = multicast_destroy(find(shared, NAME));
    if (status != MULTICAST_ERROR_INVALID_HANDLE) CHECK_OK(status);
  }
  return NULL;
}

TEST(broadcaster_registers_while_others_destroy_the_multicast_of_the_name) {
  enum { ROUNDS = 20000 };
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  pthread_t thread;
  int i;
  shared = create();
  thread = start_thread(destroy_the_multicast, NULL);
  for (i = 0; i < ROUNDS; ++i) {
    observe_with(shared, NAME, observing(&o), &options);
    CHECK(notify(shared, NAME) >= 0);
  }
  STORE(is_over, true);
  join_thread(thread);
  CHECK_OK(multicast_broadcaster_destroy(shared));
  CHECK_EQ(o.releases, ROUNDS);
}

static uint64_t passing_handle;

static void *use_what_comes_and_goes(void *argument) {
  worker *w = argument;
  multicast_options options = with_release(release_observer);
  while (!LOAD(is_over)) {
    const char *name = shared_names[next(&w->seed) % SHARED_NAMES];
    multicast_broadcaster b;
    int64_t result;
    b.id = LOAD(passing_handle);
    ++w->registered;
    result = multicast_broadcaster_register(b, name, observing(&w->own), &options, NULL);
    if (result != MULTICAST_OK) CHECK_STATUS(result, MULTICAST_ERROR_INVALID_HANDLE);
    result = notify(b, name);
    if (result < 0) CHECK_STATUS(result, MULTICAST_ERROR_INVALID_HANDLE);
    if (multicast_broadcaster_multicast(b, name).id == 0) {
      CHECK_STATUS(notify(b, name), MULTICAST_ERROR_INVALID_HANDLE);
    }
    switch (next(&w->seed) % 3) {
      case 0:
        result = multicast_broadcaster_unregister(b, name, observing(&w->own));
        if (result != MULTICAST_OK && result != MULTICAST_ERROR_NOT_FOUND) {
          CHECK_STATUS(result, MULTICAST_ERROR_INVALID_HANDLE);
        }
        break;
      case 1:
        result = multicast_broadcaster_unregister_all(b, name);
        if (result < 0) CHECK_STATUS(result, MULTICAST_ERROR_INVALID_HANDLE);
        break;
      default: break;
    }
  }
  return NULL;
}

TEST(broadcaster_created_and_destroyed_while_others_use_it) {
  enum { ROUNDS = 800 };
  static worker users[2];
  pthread_t threads[2];
  int i, round;
  name_the_shared();
  use_test_allocator(); /* what is freed is overwritten */
  CHECK_OK(multicast_broadcaster_destroy(create()));
  for (i = 0; i < 2; ++i) {
    users[i].seed = (unsigned)i;
    threads[i] = start_thread(use_what_comes_and_goes, &users[i]);
  }
  for (round = 0; round < ROUNDS; ++round) {
    multicast_broadcaster b = create();
    STORE(passing_handle, b.id);
    for (i = 0; i < SHARED_NAMES; ++i) {
      CHECK_OK(multicast_broadcaster_register(b, shared_names[i], counter(&calls), NULL,
                                              NULL));
      CHECK(notify(b, shared_names[i]) >= 0);
    }
    CHECK_OK(multicast_broadcaster_destroy(b));
  }
  STORE(is_over, true);
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
  for (i = 0; i < 2; ++i) CHECK_EQ(LOAD(users[i].own.releases), users[i].registered);
}

static char long_names[SHARED_NAMES][LONGEST + 1]; /* a look-up takes its time */

static void *look_up_what_comes_and_goes(void *unused) {
  (void)unused;
  while (!LOAD(is_over)) {
    multicast_broadcaster b;
    int i;
    b.id = LOAD(passing_handle);
    for (i = 0; i < SHARED_NAMES; ++i) {
      int64_t result = notify(b, long_names[i]);
      if (result < 0) CHECK_STATUS(result, MULTICAST_ERROR_INVALID_HANDLE);
      CHECK(result <= 1);
      if (multicast_broadcaster_multicast(b, long_names[i]).id == 0) break;
    }
  }
  return NULL;
}

TEST(broadcaster_destroyed_while_others_look_up) {
  enum { ROUNDS = 1500, LOOKERS = 3 };
  pthread_t threads[LOOKERS];
  int i, round;
  for (i = 0; i < SHARED_NAMES; ++i) {
    memset(long_names[i], 'n', LONGEST);
    long_names[i][LONGEST - 1] = (char)('a' + i);
  }
  use_test_allocator(); /* what is freed is overwritten */
  CHECK_OK(multicast_broadcaster_destroy(create()));
  for (i = 0; i < LOOKERS; ++i) threads[i] = start_thread(look_up_what_comes_and_goes, NULL);
  for (round = 0; round < ROUNDS; ++round) {
    multicast_broadcaster b = create();
    for (i = 0; i < SHARED_NAMES; ++i) {
      observe(b, long_names[i], counter(&calls));
      if (i == 0) STORE(passing_handle, b.id);
    }
    CHECK_OK(multicast_broadcaster_destroy(b));
  }
  STORE(is_over, true);
  for (i = 0; i < LOOKERS; ++i) join_thread(threads[i]);
}

static void *register_until_it_ends(void *argument) {
  worker *w = argument;
  multicast_options options = with_release(release_observer);
  multicast_status status = MULTICAST_OK;
  int i;
  for (i = 0; status == MULTICAST_OK; ++i) { /* a new name each time: the table grows */
    ++w->registered;
    status = multicast_broadcaster_register(shared, numbered(NAME, (int)w->seed + 2 * i),
                                            observing(&w->own), &options, NULL);
  }
  CHECK_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE);
  return NULL;
}

TEST(broadcaster_destroyed_while_others_register_releases_each_once) {
  enum { ROUNDS = 100 };
  int i, round;
  use_test_allocator();
  for (round = 0; round < ROUNDS; ++round) {
    worker workers[2];
    pthread_t threads[2];
    memset(workers, 0, sizeof workers);
    shared = create();
    for (i = 0; i < 2; ++i) {
      workers[i].seed = (unsigned)i;
      threads[i] = start_thread(register_until_it_ends, &workers[i]);
    }
    while (notify(shared, numbered(NAME, round % 20)) == 0) pause_ms(0);
    CHECK_OK(multicast_broadcaster_destroy(shared));
    for (i = 0; i < 2; ++i) {
      join_thread(threads[i]);
      CHECK_EQ(workers[i].own.releases, workers[i].registered);
    }
  }
}

static void *destroy_shared(void *result) {
  gate_wait(&all_ready);
  *(int64_t *)result = multicast_broadcaster_destroy(shared);
  return NULL;
}

TEST(broadcaster_destroyed_by_two_threads_is_destroyed_by_one) {
  int i, round;
  for (round = 0; round < 100; ++round) {
    int64_t results[2] = {INT64_MIN, INT64_MIN};
    pthread_t threads[2];
    all_ready.is_open = false;
    shared = create();
    for (i = 0; i < 20; ++i) observe(shared, numbered(NAME, i), counter(&calls));
    for (i = 0; i < 2; ++i) threads[i] = start_thread(destroy_shared, &results[i]);
    gate_open(&all_ready);
    for (i = 0; i < 2; ++i) join_thread(threads[i]);
    if (results[0] != MULTICAST_OK) CHECK_STATUS(results[0], MULTICAST_ERROR_INVALID_HANDLE);
    if (results[1] != MULTICAST_OK) CHECK_STATUS(results[1], MULTICAST_ERROR_INVALID_HANDLE);
    CHECK((results[0] == MULTICAST_OK) != (results[1] == MULTICAST_OK));
  }
}

enum { GROWING = 20000 };
static uint64_t growing_ids[GROWING];
static int growing_count;

static void *look_up_while_growing(void *argument) {
  unsigned seed = *(unsigned *)argument;
  int count, i;
  while ((count = LOAD(growing_count)) < GROWING) {
    if (count == 0) continue;
    i = (int)(next(&seed) % (unsigned)count);
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
    CHECK_EQ(notify(shared, numbered(NAME, i)), 1);
    CHECK_EQ(notify(shared, numbered("Unknown", i)), 0);
    i = count - 1; /* the newest */
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
  }
  return NULL;
}

TEST(broadcaster_lookups_while_the_names_grow) {
  unsigned seeds[2] = {1, 2};
  pthread_t threads[2];
  int i;
  shared = create();
  for (i = 0; i < 2; ++i) threads[i] = start_thread(look_up_while_growing, &seeds[i]);
  for (i = 0; i < GROWING; ++i) {
    observe(shared, numbered(NAME, i), counter(&calls));
    growing_ids[i] = find(shared, numbered(NAME, i)).id;
    STORE(growing_count, i + 1);
  }
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
  for (i = 0; i < GROWING; ++i) {
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
  }
}

static uint64_t found_ids[4][2000];

static void *find_new_names(void *ids) {
  int i;
  gate_wait(&all_ready);
  for (i = 0; i < 2000; ++i) ((uint64_t *)ids)[i] = find(shared, numbered(NAME, i)).id;
  return NULL;
}

TEST(broadcaster_multicast_is_the_same_for_threads_that_look_up_a_new_name_at_once) {
  pthread_t threads[4];
  int i, k;
  shared = create();
  for (k = 0; k < 4; ++k) threads[k] = start_thread(find_new_names, found_ids[k]);
  gate_open(&all_ready);
  for (k = 0; k < 4; ++k) join_thread(threads[k]);
  for (k = 1; k < 4; ++k) {
    for (i = 0; i < 2000; ++i) CHECK_EQ(found_ids[k][i], found_ids[0][i]);
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void use_inherited(void *unused) {
  observer o = {0, 0};
  multicast_options options = with_release(release_observer);
  multicast_broadcaster b;
  int known = LOAD(growing_count), i;
  (void)unused;
  CHECK_EQ(notify(shared, NAME), 1);
  observe_with(shared, NAME, observing(&o), &options);
  observe_with(shared, "OfTheChild", observing(&o), &options);
  CHECK_EQ(notify(shared, NAME), 2);
  CHECK_EQ(notify(shared, "OfTheChild"), 1);
  CHECK_EQ(o.calls, 2);
  for (i = 0; i < known; i += 1 + known / 50) {
    CHECK_EQ(find(shared, numbered(NAME, i)).id, growing_ids[i]);
  }
  for (i = 0; i < 100; ++i) CHECK(find(shared, numbered("OfTheChild", i)).id != 0);
  CHECK_OK(multicast_broadcaster_unregister(shared, NAME, observing(&o)));
  CHECK_EQ(o.releases, 1);
  b = create();
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_OK(multicast_broadcaster_unregister(shared, "OfTheChild", observing(&o)));
  CHECK_EQ(o.releases, 2);
}

static void use_and_destroy_inherited(void *unused) {
  use_inherited(unused);
  CHECK_OK(multicast_broadcaster_destroy(shared));
  expect_stale(shared);
}

TEST(broadcaster_in_the_child_of_a_fork) {
  shared = create();
  observe(shared, NAME, counter(&calls));
  in_child(use_and_destroy_inherited, NULL);
  CHECK_EQ(calls, 0);
  CHECK_EQ(notify(shared, "OfTheChild"), 0);
  use_and_destroy_inherited(NULL);
}

static void use_default_in_child(void *id) {
  multicast_broadcaster b = multicast_broadcaster_default();
  CHECK_EQ(b.id, *(uint64_t *)id);
  CHECK_EQ(notify(b, NAME), 1);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(notify(b, NAME), 2);
  CHECK_STATUS(multicast_broadcaster_destroy(b), MULTICAST_ERROR_STATE);
}

TEST(broadcaster_default_in_the_child_of_a_fork) {
  multicast_broadcaster b = multicast_broadcaster_default();
  observe(b, NAME, counter(&calls));
  in_child(use_default_in_child, &b.id);
  CHECK_EQ(calls, 0);
}

static void run_queue_in_child(void *queue) {
  multicast_queue q = *(multicast_queue *)queue;
  CHECK_EQ(multicast_queue_run(q, 0), 0); /* what waits is the parent's */
  CHECK_EQ(notify(shared, NAME), 1);
  observe(shared, "OfTheChild", counter(&calls));
  CHECK_EQ(notify(shared, "OfTheChild"), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(calls, 2);
}

TEST(broadcaster_queue_in_the_child_of_a_fork) {
  multicast_queue q = create_queue();
  shared = create_on(q);
  observe(shared, NAME, counter(&calls));
  CHECK_EQ(notify(shared, NAME), 1);
  in_child(run_queue_in_child, &q);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 1);
}

static void *register_new_names(void *unused) {
  int i;
  (void)unused;
  for (i = 0; !LOAD(is_over); ++i) {
    if (i < GROWING) {
      observe(shared, numbered(NAME, i), counter(&calls));
      growing_ids[i] = find(shared, numbered(NAME, i)).id;
      STORE(growing_count, i + 1);
    } else {
      pause_ms(1);
    }
  }
  return NULL;
}

static void *create_and_destroy(void *unused) {
  int i;
  (void)unused;
  while (!LOAD(is_over)) {
    multicast_broadcaster b = create();
    for (i = 0; i < 40; ++i) observe(b, numbered(NAME, i), counter(&calls));
    CHECK_OK(multicast_broadcaster_destroy(b));
  }
  return NULL;
}

TEST(broadcaster_in_the_child_of_a_fork_while_the_parents_threads_register) {
  pthread_t threads[2];
  int i;
  shared = create();
  observe(shared, NAME, counter(&calls));
  threads[0] = start_thread(register_new_names, NULL);
  threads[1] = start_thread(create_and_destroy, NULL);
  for (i = 0; i < 60; ++i) {
    in_child(i % 2 == 0 ? use_and_destroy_inherited : use_inherited, NULL);
  }
  STORE(is_over, true);
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
  CHECK_EQ(notify(shared, "OfTheChild"), 0);
}

TEST(broadcaster_in_the_child_of_a_fork_while_the_parents_threads_look_up) {
  pthread_t threads[2];
  int i;
  name_the_shared();
  shared = create();
  observe(shared, NAME, counter(&calls));
  for (i = 0; i < 2; ++i) threads[i] = start_thread(look_up_all_the_time, NULL);
  for (i = 0; i < 100; ++i) in_child(use_and_destroy_inherited, NULL);
  STORE(is_over, true);
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
}

TEST(register_under_an_ended_lifetime_leaves_the_name_its_multicast) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast before = multicast_broadcaster_multicast(b, "door");
  multicast_options options = multicast_options_default();
  int calls = 0;
  options.lifetime = multicast_lifetime_create();
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_OK(multicast_destroy(before));
  CHECK_STATUS(multicast_broadcaster_register(b, "door", counter(&calls), &options, NULL),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(b, "door").id, before.id);
}
