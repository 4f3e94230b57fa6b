/* Operations. Each of them calls one function of the library and compares the result with the
 * model. */

#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "model.h"

/* The operations, in the order of their numbers in an input. */
#define EACH_OPERATION(X)                                                      \
  X(create)                                                                    \
  X(destroy)                                                                   \
  X(add)                                                                       \
  X(add_with)                                                                  \
  X(add_many)                                                                  \
  X(remove)                                                                    \
  X(remove_many)                                                               \
  X(remove_context)                                                            \
  X(remove_at)                                                                 \
  X(remove_all)                                                                \
  X(look)                                                                      \
  X(invoke)                                                                    \
  X(visit)                                                                     \
  X(token)                                                                     \
  X(current)                                                                   \
  X(pause)                                                                     \
  X(create_lifetime)                                                           \
  X(end_lifetime)                                                              \
  X(create_queue)                                                              \
  X(destroy_queue)                                                             \
  X(run)                                                                       \
  X(watch)                                                                     \
  X(create_broadcaster)                                                        \
  X(destroy_broadcaster)                                                       \
  X(register)                                                                  \
  X(unregister)                                                                \
  X(unregister_all)                                                            \
  X(notify)                                                                    \
  X(look_up)                                                                   \
  X(fail_memory)                                                               \
  X(context_dies)                                                              \
  X(recurse)                                                                   \
  X(remove_every)                                                              \
  X(remove_several_within)                                                     \
  X(prune)                                                                     \
  X(get)                                                                       \
  X(clear)                                                                     \
  X(unregister_context)                                                        \
  X(invoke_with)                                                               \
  X(notify_with)                                                               \
  X(invoke_token)                                                              \
  X(visit_token)                                                               \
  X(call_stack)                                                                \
  X(enumerate)                                                                 \
  X(trim)                                                                      \
  X(attach)                                                                    \
  X(deliver)                                                                   \
  X(replay)

#define NUMBER_OF(NAME) DO_##NAME,
typedef enum operation {
  END_INSIDE, /* makes the function called by the library return */
  EACH_OPERATION(NUMBER_OF) OPERATIONS
} operation;

#define DECLARATION_OF(NAME) void perform_##NAME(const record *r);
EACH_OPERATION(DECLARATION_OF)

operation operation_of(const record *r);

/* Performs the operation of a record. Returns false for END_INSIDE. */
bool perform(const record *r);

/* Compares everything that the library reports about its objects with the model. */
void verify(void);

void invoke_again(int target);

/* Tells the model that calls to transports may fail because of deep nesting. */
void note_deep_nesting(void);

/* Checks that each transport has been notified correctly which names have observers. Must be called
 * outside all calls. */
void compare_transports(void);

/* The default broadcaster outlives an input. Before and after each input, it has no observers. */
void begin_default_broadcaster(void);
void end_default_broadcaster(void);

/* Whether a function that may wait is called with a time limit, and the limit. With a single
 * thread, no function has to wait, so the limit does not affect any result. */
typedef struct limit {
  bool is_limited;
  uint64_t timeout_ns;
} limit;
limit choose_limit(uint8_t byte);

/* ---- Choosing -------------------------------------------------------------------------------- */

/* An object chosen by a byte of the input. It is usually alive. */
typedef struct choice {
  int index; /* NONE for a forged handle, and for the handle of an object of another kind */
  uint64_t id;
  bool is_alive;
} choice;

choice choose_multicast(uint8_t byte);
choice choose_registration(uint8_t byte); /* its token is known; is_alive: whether it is live */
choice choose_lifetime(uint8_t byte);
choice choose_queue(uint8_t byte);
choice choose_broadcaster(uint8_t byte);

/* The transport of a broadcaster, and how often it had published before a notification. After the
 * notification, expect_published() expects the transport to have published, unless it has been
 * detached. */
typedef struct publication {
  int broadcaster, transport; /* or NONE */
  int64_t before;
} publication;
publication begin_publication(const choice *c);
void expect_published(const publication *p);

/* A name with a number from 0 to NAMES - 1, or an invalid name with the number NONE. */
typedef struct name_choice {
  int name;
  const char *text;
} name_choice;
extern const char *const broadcaster_names[NAMES];
name_choice choose_name(uint8_t byte);

/* Allows MULTICAST_ERROR_INVALID_HANDLE, unless the object is alive. */
void allow_handle_error(outcomes *o, const choice *c);
/* Begins an operation that changes a chosen object. Declares the choice `c`, the handle, and the
 * `allowed` results. The remaining arguments are for NOTE. */
#define BEGIN_CHANGE(HANDLE, CHOICE, ...)                                      \
  choice c = CHOICE;                                                           \
  HANDLE = {c.id};                                                             \
  outcomes allowed = {{0}, 0};                                                 \
  NOTE(__VA_ARGS__);                                                           \
  model_enter(CHANGE);                                                         \
  allow_handle_error(&allowed, &c)

/* Allows the results of removing the first equal delegate. */
void remove_of(outcomes *allowed, int target, int function, int context);

/* Allows MULTICAST_ERROR_OUT_OF_MEMORY if an allocation has failed during the frame. */
void allow_memory_error(outcomes *o, const frame *f);

/* ---- Invocations: operate_invoke.c ----------------------------------------------------------- */

/* The arguments of an invocation. */
typedef struct argument {
  uint32_t event;
  unsigned char *payload; /* freed when the call has returned; NULL if size is 0 */
  const void *passed;
  size_t size;
  int seed;
  bool is_missing; /* a size without a payload */
} argument;

argument make_argument(uint8_t event, uint8_t size);
frame *enter_invocation(int target, const argument *a);

/* Returns the errors that may be returned by a function that calls delegates. */
outcomes errors_of(const choice *c, bool is_missing);

/* Adds the errors that the policies of a multicast allow for multicast_invoke and
 * multicast_invoke_with. */
void add_refusal(const choice *c, outcomes *errors);

/* Returns true if the header does not say whether an invocation at this point would be inside a
 * call made by the multicast. */
bool is_place_open(const choice *c);

/* Begins the frame of a function that makes calls. If errors are expected, the frame has no
 * calls. */
frame *begin_calls(const outcomes *errors, frame_kind kind, int target, int64_t budget);

/* Called once the library has returned. Expects the result to be the number of calls or an allowed
 * error. */
void finish_calls(frame *f, int64_t result);
void end_calls(frame *f, int64_t result, const outcomes *errors);

/* Called once the library has returned. Expects that no call is missing and that the result is
 * allowed. */
void finish(int64_t result, const outcomes *allowed);

#endif
