/* The history of an input: the steps that the program performed. It is printed when a check fails,
 * or step by step if FUZZ_HISTORY is set in the environment. */

#ifndef HISTORY_H
#define HISTORY_H

#include <stdint.h>

void history_clear(void);

/* Appends a line. `format` must be a literal with conversions of long long only. Lines are
 * formatted when they are printed, because formatting each line would take longer than the calls
 * themselves. */
void history_note(const char *format, const long long *values, int count);

#define NOTE(...) NOTE_VALUES(__VA_ARGS__, 0)
#define NOTE_VALUES(format, ...)                                               \
  history_note((format), (const long long[]){__VA_ARGS__},                     \
               (int)(sizeof((const long long[]){__VA_ARGS__}) / sizeof(long long)))

/* Lines between these two calls are printed as nested in the line before. */
void history_indent(void);
void history_outdent(void);

void history_print(void);

#endif
