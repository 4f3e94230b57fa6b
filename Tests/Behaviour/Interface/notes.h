/* Provides delegates that record their calls in a text, which tests can compare. */

#ifndef NOTES_H
#define NOTES_H

#include "numbers.h"

/* ---- The text -------------------------------------------------------------------------------- */

/* Each call appends the letter of its delegate and the number in the payload, as in "a1 b1 a2". If
 * the event is not 0, the call also appends the event, as in "a1@7". */
extern char noted[1 << 16];
extern size_t noted_length;

/* How many times each delegate has been released, indexed by its letter. */
extern int releases[128];

void note_call(void *context, uint32_t event, const void *payload, size_t size);
void count_release_of(void *context);

/* Returns a delegate with the given letter, whose function is note_call(). Its `release` can be
 * count_release_of(). */
multicast_delegate noting(char name);

/* Evaluates the expression, and checks its result and the text recorded so far. */
#define CHECK_NOTED(expression, result, text)                                  \
  do {                                                                         \
    check_equal(__FILE__, __LINE__, #expression, #result, expression, result); \
    CHECK_TEXT(noted, text);                                                   \
  } while (0)

/* ---- Parcels --------------------------------------------------------------------------------- */

/* The last call that a delegate received, with the bytes of its payload. */
typedef struct parcel {
  int calls;
  const void *payload;
  size_t size;
  unsigned char bytes[5000];
} parcel;
multicast_delegate keeping(parcel *p);

#endif
