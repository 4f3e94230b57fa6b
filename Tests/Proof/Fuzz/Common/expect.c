#include "expect.h"

#include <stdio.h>
#include <stdlib.h>

#include "history.h"
#include "multicast.h"

void allow(outcomes *allowed, int64_t value) {
  if (!is_allowed(allowed, value)) allowed->values[allowed->count++] = value;
}

bool is_allowed(const outcomes *allowed, int64_t value) {
  for (int i = 0; i < allowed->count; ++i)
    if (allowed->values[i] == value) return true;
  return false;
}

static void print_value(int64_t value) {
  fprintf(stderr, "%lld", (long long)value);
  if (value < 0 && value >= INT32_MIN)
    fprintf(stderr, " (%s)", multicast_status_name((multicast_status)value));
}

static void begin_report(const char *file, int line) {
  history_print();
  fprintf(stderr, "\n%s:%d: ", file, line);
}

static void end_report(void) {
  fflush(stderr);
  abort();
}

void expect_failed(const char *file, int line, const char *condition, const char *text) {
  begin_report(file, line);
  fprintf(stderr, "%s\n  is false: %s\n", text, condition);
  end_report();
  abort();
}

void expect_equal(const char *file, int line, const char *expression, int64_t got,
                  const char *wanted_expression, int64_t wanted) {
  if (got == wanted) return;
  begin_report(file, line);
  fprintf(stderr, "%s\n  is       ", expression);
  print_value(got);
  fprintf(stderr, "\n  expected ");
  print_value(wanted);
  fprintf(stderr, "  (%s)\n", wanted_expression);
  end_report();
}

void expect_allowed(const char *file, int line, const char *expression, int64_t got,
                    const outcomes *allowed) {
  if (is_allowed(allowed, got)) return;
  begin_report(file, line);
  fprintf(stderr, "%s\n  is       ", expression);
  print_value(got);
  for (int i = 0; i < allowed->count; ++i) {
    fprintf(stderr, i == 0 ? "\n  expected " : "\n  or       ");
    print_value(allowed->values[i]);
  }
  fputc('\n', stderr);
  end_report();
}
