/* What is said when something is not as the header promises. */

#ifndef FAILURE_H
#define FAILURE_H

#include <stdint.h>

/* What ran, so that a failure says how to run it again. */
extern char command_again[512];

/* Prints, says how to run it again, and ends the process. */
void failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

/* Says how to run it again when the process is ended by a signal, as the library's own checks
 * do. */
void say_how_to_run_again_when_ended(void);

#define MUST(condition, ...) \
  ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition, __VA_ARGS__))

#endif
