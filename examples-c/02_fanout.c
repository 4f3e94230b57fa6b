/* SPDX-License-Identifier: MIT
 *
 * 02_fanout: reads a file once and passes every line to four delegates.
 *
 * The reader knows nothing about the delegates. It passes each line as a payload with a size, so a
 * line may have any length and contain any bytes:
 *
 *     counter   counts lines and bytes
 *     words     counts how often each word occurs
 *     matcher   counts the lines that contain a pattern
 *     head      handles the first hundred lines, then removes itself; the library owns its context
 *               and calls `release` when the context can be freed
 *
 * Usage: 02_fanout [FILE] [PATTERN]
 *
 * Without arguments, prints this on Debian (only the last number varies):
 *
 *     delegate      calls  result
 *     counter         674  lines: 674; bytes: 34475
 *     words           674  different words: 1026; most often: the 345, of 221, to 192
 *     matcher         674  lines with "the": 300
 *     head            100  longest line: 73 bytes; then removed itself
 *     lines: 674; calls: 2122
 *     lines a second: 603420
 */

#define _GNU_SOURCE /* memmem */

#include <multicast.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define DEFAULT_FILE "/usr/share/common-licenses/GPL-3"
#define DEFAULT_PATTERN "the"

/* The protocol has one method: a line has been read. The payload does not include the newline. */
enum { LINE_READ };

/* ---- counter -------------------------------------------------------------------------------- */

struct counter {
  uint64_t lines;
  uint64_t bytes;
};

static void counter_line(void *context, uint32_t event, const void *payload, size_t size) {
  struct counter *counter = context;
  (void)event;
  (void)payload;
  counter->lines += 1;
  counter->bytes += size;
}

/* ---- words: a hash table with open addressing ----------------------------------------------- */

struct word {
  char *text; /* In lower case, without a NUL at the end. NULL if the slot is free. */
  size_t length;
  uint64_t hash;
  uint64_t count;
};

struct words {
  uint64_t calls;
  struct word *slots;
  size_t capacity; /* 0 or a power of two. */
  size_t used;
  bool out_of_memory;
};

enum { WORDS_FIRST_CAPACITY = 1024, WORDS_TOP = 3, WORD_SHOWN = 24 };

/* Words consist of ASCII letters and digits and of all bytes beyond ASCII, which includes every
 * letter in UTF-8. Returns the byte in lower case, or 0 if it is not part of a word. */
static unsigned char word_byte(unsigned char byte) {
  if (byte >= 'A' && byte <= 'Z') return (unsigned char)(byte - 'A' + 'a');
  if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0x80) return byte;
  return 0;
}

static bool word_is(const struct word *word, uint64_t hash, const unsigned char *text,
                    size_t length) {
  if (word->hash != hash || word->length != length) return false;
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char)word->text[i] != word_byte(text[i])) return false;
  }
  return true;
}

static bool words_grow(struct words *words) {
  size_t capacity = words->capacity == 0 ? WORDS_FIRST_CAPACITY : words->capacity * 2;
  struct word *slots = calloc(capacity, sizeof *slots);
  if (slots == NULL) return false;
  for (size_t i = 0; i < words->capacity; i++) {
    if (words->slots[i].text == NULL) continue;
    size_t slot = (size_t)words->slots[i].hash & (capacity - 1);
    while (slots[slot].text != NULL) slot = (slot + 1) & (capacity - 1);
    slots[slot] = words->slots[i];
  }
  free(words->slots);
  words->slots = slots;
  words->capacity = capacity;
  return true;
}

static bool words_count(struct words *words, uint64_t hash, const unsigned char *text,
                        size_t length) {
  if (words->used >= words->capacity / 2 && !words_grow(words)) return false;
  size_t slot = (size_t)hash & (words->capacity - 1);
  while (words->slots[slot].text != NULL) {
    if (word_is(&words->slots[slot], hash, text, length)) {
      words->slots[slot].count += 1;
      return true;
    }
    slot = (slot + 1) & (words->capacity - 1);
  }
  struct word word = {malloc(length), length, hash, 1};
  if (word.text == NULL) return false;
  for (size_t i = 0; i < length; i++) word.text[i] = (char)word_byte(text[i]);
  words->slots[slot] = word;
  words->used += 1;
  return true;
}

static void words_line(void *context, uint32_t event, const void *payload, size_t size) {
  struct words *words = context;
  const unsigned char *bytes = payload;
  (void)event;
  words->calls += 1;
  for (size_t i = 0; i < size && !words->out_of_memory;) {
    const size_t start = i;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a. */
    for (; i < size && word_byte(bytes[i]) != 0; i++) {
      hash = (hash ^ word_byte(bytes[i])) * UINT64_C(1099511628211);
    }
    if (i == start) {
      i++;
    } else {
      words->out_of_memory = !words_count(words, hash, bytes + start, i - start);
    }
  }
}

/* Whether `a` comes before `b`: by count, and in alphabetical order if the counts are equal. */
static bool word_leads(const struct word *a, const struct word *b) {
  if (a->count != b->count) return a->count > b->count;
  int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
  return order != 0 ? order < 0 : a->length < b->length;
}

static void words_print(const struct words *words) {
  const struct word *top[WORDS_TOP];
  size_t found = 0;
  for (size_t i = 0; i < words->capacity; i++) {
    const struct word *word = &words->slots[i];
    if (word->text == NULL) continue;
    size_t place = found;
    while (place > 0 && word_leads(word, top[place - 1])) place--;
    if (place == WORDS_TOP) continue;
    if (found < WORDS_TOP) found++;
    memmove(&top[place + 1], &top[place], (found - place - 1) * sizeof top[0]);
    top[place] = word;
  }
  printf("different words: %zu", words->used);
  for (size_t i = 0; i < found; i++) {
    size_t shown = top[i]->length;
    if (shown > WORD_SHOWN) {
      /* Cut at the beginning of a UTF-8 character, not inside one. */
      shown = WORD_SHOWN;
      while (shown > 0 && ((unsigned char)top[i]->text[shown] & 0xC0) == 0x80) shown--;
    }
    printf("%s %.*s%s %" PRIu64, i == 0 ? "; most often:" : ",", (int)shown, top[i]->text,
           shown < top[i]->length ? "..." : "", top[i]->count);
  }
  putchar('\n');
}

static void words_free(struct words *words) {
  for (size_t i = 0; i < words->capacity; i++) free(words->slots[i].text);
  free(words->slots);
}

/* ---- matcher -------------------------------------------------------------------------------- */

struct matcher {
  uint64_t calls;
  uint64_t matches;
  const char *pattern;
  size_t length;
};

static void matcher_line(void *context, uint32_t event, const void *payload, size_t size) {
  struct matcher *matcher = context;
  (void)event;
  matcher->calls += 1;
  /* Unlike strstr(), memmem() does not stop at a NUL. */
  if (memmem(payload, size, matcher->pattern, matcher->length) != NULL) matcher->matches += 1;
}

/* ---- head ----------------------------------------------------------------------------------- */

enum { HEAD_LINES = 100 };

struct head_report {
  uint64_t calls;
  size_t longest;
  bool released;
};

struct head {
  struct head_report seen;
  struct head_report *report; /* `release` copies `seen` to it. */
};

static void head_line(void *context, uint32_t event, const void *payload, size_t size) {
  struct head *head = context;
  (void)event;
  (void)payload;
  head->seen.calls += 1;
  if (size > head->seen.longest) head->seen.longest = size;
  if (head->seen.calls == HEAD_LINES) {
    /* The result is MULTICAST_PENDING: the delegate is removed, but this call to it is still
     * running. `release` runs later. */
    multicast_status status = multicast_token_remove_nowait(multicast_token_current());
    if (status != MULTICAST_PENDING) {
      fprintf(stderr, "02_fanout: head: remove: %s\n", multicast_status_message(status));
      exit(EXIT_FAILURE);
    }
  }
}

static void head_release(void *context) {
  struct head *head = context;
  *head->report = head->seen;
  head->report->released = true;
  free(head);
}

/* ---- The reader ----------------------------------------------------------------------------- */

/* The state of all delegates. The head's context is on the heap; only its report is stored here. */
struct audience {
  struct counter counter;
  struct words words;
  struct matcher matcher;
  struct head_report head;
};

struct totals {
  uint64_t lines;
  uint64_t calls;
  double seconds;
};

static bool complain(const char *about, const char *why) {
  fprintf(stderr, "02_fanout: %s: %s\n", about, why);
  return false;
}

/* Passes every line of the file to the delegates. The last line may lack a newline. */
static bool read_lines(FILE *file, const char *path, multicast lines, const struct words *words,
                       struct totals *totals) {
  char *line = NULL;
  size_t capacity = 0;
  bool good = true;
  while (good) {
    ssize_t length = getline(&line, &capacity, file);
    if (length < 0) {
      /* The file has ended, reading has failed, or there was no memory for the line. */
      if (ferror(file) || !feof(file)) good = complain(path, strerror(errno));
      break;
    }
    if (line[length - 1] == '\n') length--;
    int64_t called = multicast_invoke(lines, LINE_READ, line, (size_t)length);
    if (called < 0) {
      good = complain("invoke", multicast_status_message(called));
    } else if (words->out_of_memory) {
      good = complain("words", strerror(ENOMEM));
    } else {
      totals->lines += 1;
      totals->calls += (uint64_t)called;
    }
  }
  free(line);
  return good;
}

/* ---- Set-up and report ---------------------------------------------------------------------- */

static bool add_delegates(multicast lines, struct audience *audience) {
  const multicast_delegate borrowed[] = {
      {counter_line, &audience->counter},
      {words_line, &audience->words},
      {matcher_line, &audience->matcher},
  };
  const size_t count = sizeof borrowed / sizeof borrowed[0];
  multicast_status status = multicast_add_many(lines, borrowed, count, NULL, NULL);
  if (status != MULTICAST_OK) return complain("add", multicast_status_message(status));

  struct head *head = calloc(1, sizeof *head);
  if (head == NULL) return complain("head", strerror(ENOMEM));
  head->report = &audience->head;
  multicast_delegate owned = {head_line, head};
  multicast_add_options options = multicast_add_options_default();
  options.release = head_release; /* Frees the context, even if the add fails. */
  status = multicast_add(lines, owned, &options, NULL);
  if (status != MULTICAST_OK) return complain("add", multicast_status_message(status));
  return true;
}

/* Prints the results of the delegates, after all of them have been removed. */
static bool print_report(const struct audience *audience, const struct totals *totals) {
  const struct counter *counter = &audience->counter;
  const struct words *words = &audience->words;
  const struct matcher *matcher = &audience->matcher;
  const struct head_report *head = &audience->head;
  if (!head->released) return complain("head", "its context was not released");
  if (totals->calls != counter->lines + words->calls + matcher->calls + head->calls) {
    return complain("invoke", "it counted other calls than the delegates did");
  }

  static const char row[] = "%-8s %10" PRIu64 "  ";
  printf("%-8s %10s  %s\n", "delegate", "calls", "result");
  printf(row, "counter", counter->lines);
  printf("lines: %" PRIu64 "; bytes: %" PRIu64 "\n", counter->lines, counter->bytes);
  printf(row, "words", words->calls);
  words_print(words);
  printf(row, "matcher", matcher->calls);
  printf("lines with \"%s\": %" PRIu64 "\n", matcher->pattern, matcher->matches);
  printf(row, "head", head->calls);
  printf("longest line: %zu bytes%s\n", head->longest,
         head->calls == HEAD_LINES ? "; then removed itself" : "");
  printf("lines: %" PRIu64 "; calls: %" PRIu64 "\n", totals->lines, totals->calls);
  printf("lines a second: %.0f\n",
         totals->seconds > 0 ? (double)totals->lines / totals->seconds : 0.0);
  return true;
}

static double seconds_now(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool fan_out(const char *path, const char *pattern) {
  if (*path == '\0') return complain("FILE", "the name is empty");
  FILE *file = fopen(path, "rb");
  if (file == NULL) return complain(path, strerror(errno));
  multicast lines = multicast_create();
  if (lines.id == 0) {
    fclose(file);
    return complain("create", multicast_status_message(multicast_create_error()));
  }

  struct audience audience = {.matcher = {.pattern = pattern, .length = strlen(pattern)}};
  struct totals totals = {0, 0, 0};
  bool good = add_delegates(lines, &audience);

  const double start = seconds_now();
  good = good && read_lines(file, path, lines, &audience.words, &totals);
  totals.seconds = seconds_now() - start;
  fclose(file);

  /* If the file has fewer than a hundred lines, the delegate "head" has not removed itself, so
   * multicast_destroy() releases it. */
  multicast_status status = multicast_destroy(lines);
  if (good && status != MULTICAST_OK) good = complain("destroy", multicast_status_message(status));

  good = good && print_report(&audience, &totals);
  words_free(&audience.words);
  return good;
}

/* ---- Command line --------------------------------------------------------------------------- */

static const char usage[] =
    "Usage: 02_fanout [FILE] [PATTERN]\n"
    "\n"
    "Reads FILE line by line and tells four delegates of every line: one counts lines and bytes,\n"
    "one counts words, one counts the lines that contain PATTERN, and one looks at the first\n"
    "hundred lines and then removes itself.\n"
    "\n"
    "  FILE        what to read (default: " DEFAULT_FILE ")\n"
    "  PATTERN     compared byte by byte; an empty one is in every line (default: "
    DEFAULT_PATTERN ")\n"
    "  -h, --help  show this text\n"
    "  --          what follows is a FILE, also when it begins with a dash\n";

/* Writes out everything that was printed, and returns the exit code. */
static int finish_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_SUCCESS;
  complain("standard output", strerror(errno));
  return EXIT_FAILURE;
}

int main(int argc, char **argv) {
  int first = 1;
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(usage, stdout);
    return finish_output();
  }
  if (argc > 1 && strcmp(argv[1], "--") == 0) {
    first = 2;
  } else if (argc > 1 && argv[1][0] == '-') {
    complain(argv[1], "no such option; see --help");
    return EXIT_FAILURE;
  }
  if (argc - first > 2) {
    complain(argv[first + 2], "one argument too many; see --help");
    return EXIT_FAILURE;
  }
  const char *path = argc > first ? argv[first] : DEFAULT_FILE;
  const char *pattern = argc > first + 1 ? argv[first + 1] : DEFAULT_PATTERN;
  return fan_out(path, pattern) ? finish_output() : EXIT_FAILURE;
}
