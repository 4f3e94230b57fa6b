/* Delegates that record their calls in a text, which tests compare. */

#ifndef NOTES_H
#define NOTES_H

#include "numbers.h"

/* ---- The text -------------------------------------------------------------------------------- */

/* A delegate whose context is a letter appends that letter and the number in its payload to
 * `noted`, as in "a1 b1 a2". If the event is not 0 it is appended, too: "a1@7". */
extern char noted[1 << 16];
extern size_t noted_length;

/* The number of releases, indexed by the letter of the delegate. */
extern int releases[128];

void note_call(void *context, uint32_t event, const void *payload, size_t size);
void count_release_of(void *context);

/* Returns a delegate that calls note_call(). Use count_release_of() as its `release`. */
multicast_delegate noting(char name);

/* Checks the result of an expression, and the notes after it. */
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
