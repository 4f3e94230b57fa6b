#include "history.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 20000, VALUES = 10, DEEPEST = 30 };

typedef struct line {
  const char *format;
  long long values[VALUES];
  int indent;
} line;

static line lines[LINES]; /* a ring of the newest lines */
static int64_t noted;
static int indent;

void history_clear(void) {
  noted = 0;
  indent = 0;
}

static void print(const line *l) {
  const long long *v = l->values;
  fprintf(stderr, "%*s", 2 * (l->indent < DEEPEST ? l->indent : DEEPEST) + 2, "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  fprintf(stderr, l->format, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]);
#pragma GCC diagnostic pop
  fputc('\n', stderr);
}

static bool is_live(void) {
  static int answer = -1;
  if (answer < 0) answer = getenv("FUZZ_HISTORY") != NULL;
  return answer;
}

void history_note(const char *format, const long long *values, int count) {
  line *l = &lines[noted++ % LINES];
  l->format = format;
  for (int i = 0; i < VALUES; ++i) l->values[i] = i < count ? values[i] : 0;
  l->indent = indent;
  if (is_live()) print(l);
}

void history_indent(void) { ++indent; }
void history_outdent(void) { --indent; }

void history_print(void) {
  int64_t i = noted > LINES ? noted - LINES : 0;
  if (is_live()) return; /* the lines have already been printed */
  fprintf(stderr, "\nWhat the input did, in order; nested calls are indented:\n");
  if (i > 0) fprintf(stderr, "  ... %lld earlier lines\n", (long long)i);
  for (; i < noted; ++i) print(&lines[i % LINES]);
}
