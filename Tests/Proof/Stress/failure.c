#define _GNU_SOURCE
#include "failure.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actor.h"

char command_again[512];

static void print_command(void) {
  (void)!write(STDERR_FILENO, "again: ", 7);
  (void)!write(STDERR_FILENO, command_again, strlen(command_again));
  (void)!write(STDERR_FILENO, "\n", 1);
}

void failed(const char *file, int line, const char *condition, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "%s:%d: check failed: %s is false: %s\n", file, line, condition, text);
  actor_print_current();
  print_command();
  _exit(1);
}

static void on_signal(int number) {
  print_command();
  signal(number, SIG_DFL);
  raise(number);
}

void print_command_on_signals(void) {
  /* The address sanitizer has its own handlers for these signals. */
#ifndef __SANITIZE_ADDRESS__
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) signal(numbers[i], on_signal);
#endif
  signal(SIGABRT, on_signal);
}
