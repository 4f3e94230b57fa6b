/* Two names are equal if and only if all their bytes are equal. */

#include "broadcasters.h"

#include <sys/mman.h>
#include <unistd.h>

TEST_OF_BROADCASTER(broadcaster_names_that_are_prefixes_of_each_other_never_meet) {
  static int each[LONGEST + 1];
  char name[LONGEST + 1];
  memset(name, 'a', sizeof name);
  for (int length = 1; length <= LONGEST; ++length) {
    name[length] = '\0';
    observe(b, name, counter(&each[length]));
    name[length] = 'a';
  }
  for (int length = 1; length <= LONGEST; ++length) {
    name[length] = '\0';
    CHECK_EQ(notify(b, name), 1);
    CHECK_EQ(each[length], 1);
    name[length] = 'a';
  }
  for (int other = 1; other <= LONGEST; ++other) CHECK_EQ(each[other], 1);
}

TEST_OF_BROADCASTER(broadcaster_names_that_differ_in_one_byte_never_meet) {
  enum { PLACES = 6, BYTES = 256 };
  static const int places[PLACES] = {0, 1, 8, 100, LONGEST - 2, LONGEST - 1};
  static int each[PLACES][BYTES];
  char name[LONGEST + 1];
  memset(name, 'n', LONGEST);
  name[LONGEST] = '\0';
  for (int round = 0; round < 2; ++round) {
    for (int place = 0; place < PLACES; ++place) {
      for (int byte = 1; byte < BYTES; ++byte) {
        if (byte == 'n') continue; /* with this byte, the name is the same for every place */
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

TEST_OF_BROADCASTER(broadcaster_names_differ_by_the_last_byte_at_any_length) {
  char name[LONGEST + 1];
  for (int length = 1; length <= LONGEST; ++length) {
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

TEST_OF_BROADCASTER(broadcaster_names_end_at_the_first_nul) {
  static const char first[] = "same\0one", second[] = "same\0two";
  observe(b, first, counter(&calls));
  CHECK_EQ(notify(b, second), 1);
}

static void expect_no_name(multicast_broadcaster b, const char *name) {
  observer o = {0, 0};
  multicast_add_options options = ADD_OPTIONS(.release = release_observer);
  multicast_token token = {77};
  CHECK_ERROR(multicast_broadcaster_register(b, name, observing(&o), &options, &token),
              INVALID_ARGUMENT);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(o.releases, 1);
  CHECK_ERROR(multicast_broadcaster_unregister(b, name, observing(&o)), INVALID_ARGUMENT);
  CHECK_ERROR(multicast_broadcaster_unregister_all(b, name), INVALID_ARGUMENT);
  CHECK_ERROR(notify(b, name), INVALID_ARGUMENT);
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

TEST_OF_BROADCASTER(broadcaster_copies_the_name) {
  char name[LONGEST + 1] = NAME;
  observe(b, name, counter(&calls));
  memset(name, 'x', LONGEST);
  CHECK_EQ(notify(b, NAME), 1);
  strcpy(name, "Other");
  multicast m = find(b, name);
  memset(name, 'x', LONGEST);
  CHECK_EQ(find(b, "Other").id, m.id);
  CHECK_EQ(calls, 1);
}

TEST(broadcaster_reads_no_byte_beyond_the_name) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  multicast_broadcaster b = create();
  CHECK(pages != MAP_FAILED);
  memset(pages, 'n', page);
  CHECK_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  pages[page - 1] = '\0';
  for (size_t length = 1; length <= LONGEST; ++length) {
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
  int64_t before = 0;
  use_test_allocator();
  multicast_broadcaster b = create();
  multicast m = find(b, NAME);
  for (int i = 0; i < 10000; ++i) {
    observe(b, NAME, counter(&calls));
    CHECK_EQ(notify(b, NAME), 1);
    CHECK_OK(multicast_broadcaster_unregister(b, NAME, counter(&calls)));
    CHECK_EQ(find(b, NAME).id, m.id);
    if (i == 100) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST_OF_BROADCASTER(broadcaster_of_100000_names) {
  enum { COUNT = 100000 };
  static int each[COUNT];
  for (int i = 0; i < COUNT; ++i) observe(b, numbered(NAME, i), counter(&each[i]));
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(notify(b, numbered(NAME, i)), 1);
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(each[i], 1);
  for (int i = 0; i < COUNT; i += 2) {
    CHECK_OK(multicast_broadcaster_unregister(b, numbered(NAME, i), counter(&each[i])));
  }
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(notify(b, numbered(NAME, i)), i % 2);
  for (int i = 0; i < COUNT; ++i) CHECK_EQ(each[i], 1 + i % 2);
  CHECK_EQ(notify(b, numbered(NAME, COUNT)), 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
}

/* Creates the multicasts of many names that differ only in the bytes at one position, and returns
 * how much processor time this takes, in seconds. */
static double seconds_for_names(int place) {
  enum { COUNT = 8000, LENGTH = 40, DIGITS = 5 };
  multicast_broadcaster b = create();
  struct timespec begin, end;
  char name[LENGTH + 1], digits[16];
  memset(name, '-', LENGTH);
  name[LENGTH] = '\0';
  CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin), 0);
  for (int i = 0; i < COUNT; ++i) {
    snprintf(digits, sizeof digits, "%05d", i);
    memcpy(name + place, digits, DIGITS);
    CHECK(multicast_broadcaster_multicast(b, name).id != 0);
  }
  CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end), 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
  return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* If the hash ignored part of the name, names that differ only in that part would have equal
 * hashes, and each lookup would compare the name with all other names. */
TEST(broadcaster_looks_names_up_as_fast_wherever_they_differ) {
  static const int places[] = {0, 8, 16, 24, 32, 35};
  double each[6], least;
  char line[96];
  seconds_for_names(0); /* warm-up, not measured */
  for (int i = 0; i < 6; ++i) each[i] = seconds_for_names(places[i]);
  least = each[0];
  for (int i = 1; i < 6; ++i) least = each[i] < least ? each[i] : least;
  for (int i = 0; i < 6; ++i) {
    if (each[i] <= 15 * least) continue;
    snprintf(line, sizeof line, "in byte %d takes %.4f s, elsewhere %.4f s", places[i], each[i],
             least);
    check_failed(__FILE__, __LINE__, "a difference", line);
  }
}
