/* A parcel is a payload that the library owns or that `copy` makes. Parcels are counted, must be
 * released once, and are poisoned when they are released. */

#ifndef PARCEL_H
#define PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the parcels of one invocation. The invocation and each parcel hold a reference to it. */
typedef struct receipts {
  int32_t references;
  int32_t left;     /* parcels that the library has not released */
  int32_t copies;   /* the number of calls to `copy` */
  int32_t begun;    /* the number of calls with one of the parcels */
  int32_t returned; /* how many of these calls have returned */
  bool is_quiet;    /* whether copies and releases perform no operations */
} receipts;

receipts *receipts_make(void);
void receipts_release(receipts *r);

/* If the event is PARCELS or larger, the payload is always in a parcel, and the parcel counts its
 * calls. With smaller events, the payload may be in a parcel or not, and its bytes are the same in
 * both cases. */
enum { PARCELS = 1000 };

/* Make a parcel that the library or the test will own, and return its payload. */
void *parcel_make(uint32_t event, size_t size, receipts *r);
void *parcel_make_own(uint32_t event, size_t size, receipts *r);
void parcel_end_own(void *payload);

/* The `copy` and `release` functions of invocations whose payload is in a parcel. */
const void *parcel_copy(const void *payload, size_t size);
void parcel_release(const void *payload, size_t size);

/* Called by a delegate if the event of its call is PARCELS or larger. */
void parcel_call_begins(uint32_t event, const void *payload, size_t size);
void parcel_call_ends(uint32_t event, const void *payload, size_t size);
void parcel_call_returns(const void *payload);

/* Returns the number of parcels that the library has not yet released. */
int64_t parcel_count(void);
uint64_t parcel_releases(void);

/* Sets a function that every release and copy function calls in addition to its own work. */
void set_release_body(void (*body)(void));

#endif
