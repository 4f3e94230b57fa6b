/* Payloads that the library owns, or that `copy` makes. Each parcel is counted, must be released
 * once, and is poisoned by its release. */

#ifndef PARCEL_H
#define PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the parcels of one invocation. The invocation and each parcel have a reference. */
typedef struct receipts {
  int32_t references;
  int32_t left;     /* parcels that the library has not released */
  int32_t copies;   /* calls of `copy` */
  int32_t begun;    /* calls with one of the parcels */
  int32_t returned; /* how many of these calls have returned */
  bool is_quiet;    /* copies and releases perform no operations */
} receipts;

receipts *receipts_make(void);
void receipts_release(receipts *r);

/* From this event number on, the payload is always in a parcel, and delegates count its calls. With
 * smaller events the payload may be in a parcel, too; its bytes are the same. */
enum { PARCELS = 1000 };

/* Makes a parcel that the library will own, or one that the test owns. Returns its payload. */
void *parcel_make(uint32_t event, size_t size, receipts *r);
void *parcel_make_own(uint32_t event, size_t size, receipts *r);
void parcel_end_own(void *payload);

/* Functions for multicast_invocation, for payloads in parcels only. */
const void *parcel_copy(const void *payload, size_t size);
void parcel_release(const void *payload, size_t size);

/* Called in calls whose event is PARCELS or larger. */
void parcel_call_begins(uint32_t event, const void *payload, size_t size);
void parcel_call_ends(uint32_t event, const void *payload, size_t size);
void parcel_call_returns(const void *payload);

/* The number of parcels that the library has not released. */
int64_t parcel_count(void);
uint64_t parcel_releases(void);

/* Sets a function that each release and each copy also calls. */
void set_release_body(void (*body)(void));

#endif
