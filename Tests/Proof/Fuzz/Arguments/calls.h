/* Calls of any function of the header with any arguments. The result must be one that the header
 * allows. */

#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>
#include <stdint.h>

void begin_calls(void); /* the calling thread is the fuzzing thread */
void call_something(void);

/* Destroys everything that was created. */
void destroy_everything(void);

bool is_fuzzing_thread(void);

/* ---- What calls.py makes of the header ------------------------------------------------------ */

typedef void (*any_call)(void);
extern const any_call any_calls[];
extern const int any_call_count;

/* Expects MULTICAST_OK or one of these. */
#define EXPECT_STATUS(call, ...)                                               \
  expect_result(__FILE__, __LINE__, #call, call, false, (const int[]){__VA_ARGS__, 0})

/* Expects a count or one of these. */
#define EXPECT_COUNT(call, ...)                                                \
  expect_result(__FILE__, __LINE__, #call, call, true, (const int[]){__VA_ARGS__, 0})

/* `allowed` ends with 0, which is always allowed. */
void expect_result(const char *file, int line, const char *call, int64_t result, bool is_count,
                   const int *allowed);

#endif
