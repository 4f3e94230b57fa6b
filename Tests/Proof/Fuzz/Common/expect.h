/* A failed check prints the history, the value and the expected value, and aborts the program, so
 * that libFuzzer keeps the input. */

#ifndef EXPECT_H
#define EXPECT_H

#include <stdbool.h>
#include <stdint.h>

/* The allowed results of a call. If several arguments are wrong, several results are allowed. */
typedef struct outcomes {
  int64_t values[12];
  int count;
} outcomes;

void allow(outcomes *allowed, int64_t value);
bool is_allowed(const outcomes *allowed, int64_t value);

#define EXPECT(condition, text)                                                \
  ((condition) ? (void)0 : expect_failed(__FILE__, __LINE__, #condition, text))
#define EXPECT_EQ(got, wanted)                                                 \
  expect_equal(__FILE__, __LINE__, #got, (int64_t)(got), #wanted, (int64_t)(wanted))
#define EXPECT_ALLOWED(got, allowed)                                           \
  expect_allowed(__FILE__, __LINE__, #got, (int64_t)(got), allowed)

void expect_failed(const char *file, int line, const char *condition, const char *text)
    __attribute__((noreturn));
void expect_equal(const char *file, int line, const char *expression, int64_t got,
                  const char *wanted_expression, int64_t wanted);
void expect_allowed(const char *file, int line, const char *expression, int64_t got,
                    const outcomes *allowed);

#endif
