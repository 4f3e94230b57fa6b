/* Captures the output of multicast_dump() and multicast_describe(). */

#ifndef REPORTS_H
#define REPORTS_H

#include "harness.h"

/* The output of a single call. */
typedef struct report {
  char text[1 << 16];
  size_t length;
  int lines;
  int most; /* the writer stops after this many lines; 0: never */
} report;

/* A writer that appends to the report in its context. Fails the test unless it receives one line at
 * a time. */
bool report_line(void *context, const char *text, size_t size);

/* Return the current output. */
const char *dumped(report *r);
const char *described(report *r, multicast m);

/* Returns whether the text has a line that matches `line` from start to end, where `...` matches
 * any text. */
bool has_line(const char *text, const char *line);

/* Like has_line(), but with a printf() format, and fails the test if no line matches. */
__attribute__((format(printf, 2, 3))) void expect_line(const char *text, const char *format, ...);

/* Patterns for expect_line(). own_number() matches the calling thread's system thread ID, and
 * some_place() matches the address of a function that no library exports. */
const char *own_number(void);
const char *some_place(void);

#endif
