/* Texts of multicast_dump() and multicast_describe(). */

#ifndef REPORTS_H
#define REPORTS_H

#include "harness.h"

/* A text, as it came. */
typedef struct report {
  char text[1 << 16];
  size_t length;
  int lines;
  int most; /* the writer stops after so many lines; 0: never */
} report;

/* The writer; its context is a report. Fails the test if it does not get a line at a time. */
bool report_line(void *context, const char *text, size_t size);

/* The text of now. */
const char *dumped(report *r);
const char *described(report *r, multicast m);

/* Whether the text has a line that begins and ends so; `...` in `line` stands for anything. */
bool has_line(const char *text, const char *line);

/* The same with a format of printf(). Fails the test if there is no such line. */
__attribute__((format(printf, 2, 3))) void expect_line(const char *text, const char *format, ...);

/* The number by which the system knows the calling thread. */
int own_number(void);

#endif
