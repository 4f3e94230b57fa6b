/* The history of an input, that is, the steps that the program has performed. A failed check prints
 * the history. If FUZZ_HISTORY is set in the environment, each step is printed immediately. */

#ifndef HISTORY_H
#define HISTORY_H

#include <stdint.h>

void history_clear(void);

/* Appends a line. `format` must be a literal in which all conversions are for long long. It is
 * applied only if the line is printed, because formatting every line would take longer than the
 * calls themselves. */
void history_note(const char *format, const long long *values, int count);

#define NOTE(...) NOTE_VALUES(__VA_ARGS__, 0)
#define NOTE_VALUES(format, ...)                                               \
  history_note((format), (const long long[]){__VA_ARGS__},                     \
               (int)(sizeof((const long long[]){__VA_ARGS__}) / sizeof(long long)))

/* Lines between these two calls are indented below the preceding line. */
void history_indent(void);
void history_outdent(void);

void history_print(void);

#endif
