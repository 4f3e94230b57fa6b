/* A context, made for one registration, which knows what may be done with it at each moment. */

#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "multicast.h"

/* What a delegate with `lock` is passed. */
typedef struct strong {
  struct context *context;
} strong;

typedef struct context {
  uint32_t state;
  int32_t calls;   /* that run now */
  int32_t begun;   /* calls that ever began */
  int32_t locked;  /* locks without unlock */
  int32_t released;
  int32_t holders; /* registrations that have not been released, and whoever makes some */
  uint32_t word;   /* read by calls, written by the end: no atomic, for the thread sanitizer */
  bool is_owned;   /* the library says when it has let go of it */
  bool is_shared;  /* by several registrations */
  bool has_token;  /* `token` is that of its only registration */
  bool is_weak;
  multicast_options options;
  multicast_token token; /* written by the library, before a call can begin */
  uint64_t adder, added; /* by which thread, and how many invocations that had begun by then */
  int32_t *group;        /* how many of a group there still are; NULL for none */
  strong part;
} context;

/* One that the caller holds, with options that fit a random delegate. */
context *context_make(void);

/* A context for a registration that the library does not tell the end of. */
context *context_make_borrowed(void);

multicast_delegate context_delegate(context *c);

/* One holder more, or less; the last ends it. */
void context_hold(context *c);
void context_drop(context *c);

/* No call of it runs, and none will: it is freed. */
void context_end(context *c);

/* A removal that waits has returned MULTICAST_OK: what was registered under the token is never
 * called again, and no call of it runs. */
void token_is_finished(multicast_token token);

/* How many there are that have not ended. */
int64_t context_count(void);

/* How many calls were made, and releases. */
uint64_t context_calls(void);
uint64_t context_releases(void);

/* Frees those that are kept to notice late calls. */
void contexts_forget(void);

/* Where calls go on: they may do anything. */
void set_call_body(void (*body)(context *c));

/* Payloads that calls recognize. */
enum { PAYLOAD_LIMIT = 200 };
extern const unsigned char whole_payload[];
const void *payload_of(uint32_t event, size_t size);
uint32_t random_event(void);
size_t random_size(void);

/* An event that only visitors pass on. */
enum { VISITED = 0x7E57ED };

#endif
