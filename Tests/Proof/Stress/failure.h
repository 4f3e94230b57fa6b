/* Reports failures. A failure is a violation of one of the header's promises. */

#ifndef FAILURE_H
#define FAILURE_H

#include <stdint.h>

/* The command that repeats this run. */
extern char command_again[512];

/* Prints the failure and the command, and ends the process. */
void failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

/* Installs handlers that print the command before a signal ends the process. Such signals come from
 * a crash, or from abort() in the library's internal checks. */
void print_command_on_signals(void);

#define MUST(condition, ...) \
  ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition, __VA_ARGS__))

#endif
