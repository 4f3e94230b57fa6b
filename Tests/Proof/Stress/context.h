/* A context checks each call, lock, unlock and release of its own registration. */

#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "multicast.h"

/* The object that `lock` returns, and that a delegate with `lock` receives. */
typedef struct strong {
  struct context *context;
} strong;

typedef struct context {
  uint32_t state;
  int32_t calls;      /* running now */
  int32_t begun;      /* the number of calls that have ever begun */
  int32_t locked;     /* locks without unlock */
  int32_t released;   /* releases */
  int32_t references; /* of unreleased registrations, and of threads that add */
  uint32_t word;      /* calls read it, and context_end() writes it; not atomic, to detect races */
  bool is_owned;      /* it has `release` */
  bool is_shared;     /* several registrations use it */
  bool has_token;     /* `token` is the token of its only registration */
  bool is_weak;
  bool is_quiet;      /* its calls and its release perform no operations */
  multicast_add_options options;
  multicast_token token; /* written by the library before a call can begin */
  uint64_t adder, added; /* the adding thread, and the invocations that it had begun */
  const char *prefixed;  /* the delegate observes this prefix; NULL if it observes none */
  uint32_t prefix_size;
  int32_t *group;        /* the number of contexts in a group, or NULL */
  strong part;
} context;

/* Makes a context with random options. The caller owns a reference to it. */
context *context_make(void);

/* Makes a context without `release`. */
context *context_make_borrowed(void);

/* The first function makes a multicast with functions that lock and release the contexts of its
 * delegates. The second function makes a context for such a multicast. */
multicast make_multicast_of_contexts(const multicast_create_options *more);
context *context_make_shared(void);

multicast_delegate context_delegate(context *c);

/* Add or release a reference. Releasing the last reference ends the context. */
void context_retain(context *c);
void context_release(context *c);

/* Frees the context. The caller must make sure that no call is using the context or will use it. */
void context_end(context *c);

/* Called when a waiting removal has returned MULTICAST_OK. From then on, a running or new call to
 * the registered delegate is a failure. */
void token_is_finished(multicast_token token);

/* Returns the number of contexts that have not yet ended. */
int64_t context_count(void);

/* Return the total number of calls, or of releases. */
uint64_t context_calls(void);
uint64_t context_releases(void);

/* Sets a function that every delegate and release function calls in addition to its own work. Its
 * argument is NULL in a release. */
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
