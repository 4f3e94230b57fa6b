/* Delegates that note their calls, for tests to compare. */

#ifndef NOTES_H
#define NOTES_H

#include "numbers.h"

/* ---- The text -------------------------------------------------------------------------------- */

/* A delegate whose context is a letter notes that letter and the number in its payload in `noted`:
 * "a1 b1 a2". It adds the event unless that is 0: "a1@7". */
extern char noted[1 << 16];
extern size_t noted_length;

/* Indexed by the letter of the delegate. */
extern int releases[128];

void note_call(void *context, uint32_t event, const void *payload, size_t size);
void count_release_of(void *context);

/* A delegate that calls note_call. Use count_release_of as its `release`. */
multicast_delegate noting(char name);

/* What is called returns this, and these are the notes then. */
#define CHECK_NOTED(expression, result, text)                                  \
  do {                                                                         \
    check_equal(__FILE__, __LINE__, #expression, #result, expression, result); \
    CHECK_TEXT(noted, text);                                                   \
  } while (0)

/* ---- Parcels --------------------------------------------------------------------------------- */

/* What a call received, with the bytes. */
typedef struct parcel {
  int calls;
  const void *payload;
  size_t size;
  unsigned char bytes[5000];
} parcel;
multicast_delegate keeping(parcel *p);

#endif
