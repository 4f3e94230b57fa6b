/* What delegates write down of their calls, for tests to compare. */

#ifndef NOTES_H
#define NOTES_H

#include "harness.h"
#include "numbers.h"

/* ---- The text -------------------------------------------------------------------------------- */

/* A delegate of one letter, which is its context, writes itself and the number that was its payload
 * into `noted`, "a1 b1 a2"; its event too unless that is 0, "a1@7". */
extern char noted[1 << 16];
extern size_t noted_length;

/* By the letter of the delegate. */
extern int releases[128];

void note_call(void *context, uint32_t event, const void *payload, size_t size);
void count_release_of(void *context);

/* Its call is note_call, and its release, where it has one, count_release_of. */
multicast_delegate noting(char name);

/* ---- Parcels --------------------------------------------------------------------------------- */

/* What a call got, bytes included. */
typedef struct parcel {
  int calls;
  const void *payload;
  size_t size;
  unsigned char bytes[5000];
} parcel;
multicast_delegate keeping(parcel *p);

#endif
