/* What an input has made the program do, to be read when something is wrong. Printed then, or as it
 * happens where FUZZ_HISTORY is set in the environment. */

#ifndef HISTORY_H
#define HISTORY_H

#include <stdint.h>

void history_clear(void);

/* One line; `format` stays, and has conversions for long long alone. Nothing is formatted before it
 * is printed: that would take longer than the calls themselves. */
void history_note(const char *format, const long long *values, int count);

#define NOTE(...) NOTE_VALUES(__VA_ARGS__, 0)
#define NOTE_VALUES(format, ...)                                               \
  history_note((format), (const long long[]){__VA_ARGS__},                     \
               (int)(sizeof((const long long[]){__VA_ARGS__}) / sizeof(long long)))

/* What follows happens inside what was noted last, until the matching call. */
void history_indent(void);
void history_outdent(void);

void history_print(void);

#endif
