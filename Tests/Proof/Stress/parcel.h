/* Payloads that are handed over to the library, or that `copy` makes. Each is counted, must be
 * released once, and is poisoned then. */

#ifndef PARCEL_H
#define PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What became of the parcels of one invocation. The invocation and each parcel have a reference. */
typedef struct receipts {
  int32_t references;
  int32_t left;     /* parcels that the library has not released */
  int32_t copies;   /* calls of `copy` */
  int32_t begun;    /* calls with one of the parcels */
  int32_t returned; /* of these */
  bool is_quiet;    /* copies and releases do nothing else */
} receipts;

receipts *receipts_make(void);
void receipts_release(receipts *r);

/* A delegate finds the parcel of an event from here on, and counts its calls. The payload of a
 * smaller event may be that of a parcel, too: it has the same bytes. */
enum { PARCELS = 1000 };

/* Makes a parcel for the library, or one for the test. Returns its payload. */
void *parcel_make(uint32_t event, size_t size, receipts *r);
void *parcel_make_own(uint32_t event, size_t size, receipts *r);
void parcel_end_own(void *payload);

/* For multicast_invocation: of parcels only. */
const void *parcel_copy(const void *payload, size_t size);
void parcel_release(const void *payload, size_t size);

/* In a call with an event from PARCELS on. */
void parcel_call_begins(uint32_t event, const void *payload, size_t size);
void parcel_call_ends(uint32_t event, const void *payload, size_t size);
void parcel_call_returns(const void *payload);

/* The parcels that the library has not released. */
int64_t parcel_count(void);
uint64_t parcel_releases(void);

/* What each release and each copy does besides. */
void set_release_body(void (*body)(void));

#endif
