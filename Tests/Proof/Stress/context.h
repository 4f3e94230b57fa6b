/* A context for one registration, which checks each call, lock, unlock and release. */

#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "multicast.h"

/* What `lock` returns, and a delegate with `lock` gets. */
typedef struct strong {
  struct context *context;
} strong;

typedef struct context {
  uint32_t state;
  int32_t calls;      /* running now */
  int32_t begun;      /* calls that have begun, in all */
  int32_t locked;     /* locks without unlock */
  int32_t released;   /* releases */
  int32_t references; /* registrations that are not released, and threads that are adding some */
  uint32_t word;      /* read by calls, written at the end: not atomic, for the thread sanitizer */
  bool is_owned;      /* it has `release` */
  bool is_shared;     /* by several registrations */
  bool has_token;     /* `token` is that of its only registration */
  bool is_weak;
  bool is_quiet;      /* its calls and its release do nothing else */
  multicast_add_options options;
  multicast_token token; /* written by the library before a call can begin */
  uint64_t adder, added; /* the thread that adds it, and how many invocations that had begun */
  int32_t *group;        /* counts the contexts of a group; or NULL */
  strong part;
} context;

/* A context with random options, to which the caller has a reference. */
context *context_make(void);

/* A context without `release`. */
context *context_make_borrowed(void);

/* A multicast whose delegates need no functions of their own: it locks and releases contexts. And a
 * context for it. */
multicast make_multicast_of_contexts(const multicast_create_options *more);
context *context_make_shared(void);

multicast_delegate context_delegate(context *c);

/* Adds a reference, or drops one. The last one ends the context. */
void context_retain(context *c);
void context_release(context *c);

/* Frees the context: no call of it runs, and none will begin. */
void context_end(context *c);

/* A removal that waits has returned MULTICAST_OK: no call of the token's registration runs, and
 * none will begin. */
void token_is_finished(multicast_token token);

/* The number of contexts that have not ended. */
int64_t context_count(void);

/* The number of calls and of releases, in all. */
uint64_t context_calls(void);
uint64_t context_releases(void);

/* What each call and release does; NULL for a release. */
void set_call_body(void (*body)(context *c));

/* Payloads that calls can verify. */
enum { PAYLOAD_LIMIT = 200 };
extern const unsigned char whole_payload[];
const void *payload_of(uint32_t event, size_t size);
uint32_t random_event(void);
size_t random_size(void);

/* The event of calls made by visitors. */
enum { VISITED = 0x7E57ED };

#endif
