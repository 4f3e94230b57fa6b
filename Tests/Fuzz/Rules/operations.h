/* The operations: each calls one function of the library and compares the result with the model. */

#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "model.h"

typedef enum operation {
  END_INSIDE, /* the function that the library has called returns */
  CREATE,
  DESTROY,
  ADD,
  ADD_WITH,
  ADD_MANY,
  REMOVE,
  REMOVE_MANY,
  REMOVE_CONTEXT,
  REMOVE_AT,
  REMOVE_ALL,
  LOOK,
  INVOKE_IT,
  VISIT_IT,
  REMOVE_TOKEN,
  REMOVE_CURRENT,
  PAUSE,
  CREATE_LIFETIME,
  END_LIFETIME,
  CREATE_QUEUE,
  DESTROY_QUEUE,
  RUN_QUEUE,
  WATCH_QUEUE,
  CREATE_BROADCASTER,
  DESTROY_BROADCASTER,
  REGISTER,
  UNREGISTER,
  UNREGISTER_ALL,
  NOTIFY,
  LOOK_UP,
  FAIL_MEMORY,
  CONTEXT_DIES,
  RECURSE,
  REMOVE_EVERY,
  REMOVE_SEVERAL_WITHIN,
  PRUNE_IT,
  GET_TOKEN,
  CLEAR_QUEUE,
  UNREGISTER_CONTEXT,
  INVOKE_WITH,
  NOTIFY_WITH,
  INVOKE_TOKEN,
  VISIT_TOKEN,
  CALL_STACK,
  ENUMERATE_IT,
  TRIM,
  ATTACH,
  DELIVER,
  REPLAY,
  OPERATIONS
} operation;

operation operation_of(const record *r);

/* Returns false for END_INSIDE. */
bool perform(const record *r);

/* Compares all that the library can be asked with the model. */
void verify(void);

/* ---- The files operate_*.c ------------------------------------------------------------------- */

void perform_create(const record *r);
void perform_destroy(const record *r);
void perform_remove(const record *r);
void perform_remove_every(const record *r);
void perform_remove_many(const record *r);
void perform_remove_several_within(const record *r);
void perform_prune(const record *r);
void perform_remove_context(const record *r);
void perform_remove_at(const record *r);
void perform_remove_all(const record *r);
void perform_look(const record *r);

void perform_add(const record *r, bool has_options);
void perform_add_many(const record *r);
void perform_register(const record *r);

void perform_invoke(const record *r);
void perform_notify(const record *r);
void perform_deliver(const record *r);
void perform_visit(const record *r);
void perform_enumerate(const record *r);
void invoke_again(int target);
void perform_invoke_with(const record *r);
void perform_notify_with(const record *r);
void perform_invoke_token(const record *r);
void perform_visit_token(const record *r);
void perform_call_stack(const record *r);
void perform_replay(const record *r);

void perform_token(const record *r);
void perform_current(const record *r);
void perform_pause(const record *r);
void perform_get(const record *r);

void perform_create_lifetime(void);
void perform_end_lifetime(const record *r);

void perform_create_queue(const record *r);
void perform_destroy_queue(const record *r);
void perform_run(const record *r);
void perform_watch(const record *r);
void perform_clear(const record *r);

void perform_create_broadcaster(const record *r);
void perform_destroy_broadcaster(const record *r);
void perform_unregister(const record *r);
void perform_unregister_all(const record *r);
void perform_unregister_context(const record *r);
void perform_look_up(const record *r);
void perform_attach(const record *r);

/* Calls of transports may fail. */
void note_deep_nesting(void);

/* Compares what transports were told with the observers that there are, outside all calls. */
void compare_transports(void);

/* The default broadcaster outlives an input. Each input finds and leaves it without observers. */
void begin_default_broadcaster(void);
void end_default_broadcaster(void);

/* Whether an end is to be called with a time limit, and with which one. With a single thread there
 * is nothing to wait for: the limit changes no result. */
typedef struct limit {
  bool is_limited;
  uint64_t timeout_ns;
} limit;
limit choose_limit(uint8_t byte);

/* ---- Choosing -------------------------------------------------------------------------------- */

/* The object that a byte chooses: mostly one that is alive. */
typedef struct choice {
  int index; /* NONE: a forged handle, or that of an object of another kind */
  uint64_t id;
  bool is_alive;
} choice;

choice choose_multicast(uint8_t byte);
choice choose_registration(uint8_t byte); /* one whose token is known; is_alive: it is live */
choice choose_lifetime(uint8_t byte);
choice choose_queue(uint8_t byte);
choice choose_broadcaster(uint8_t byte);

/* The transport of a broadcaster, and how often it has published. Expects, after a notification,
 * that it has done so, unless it was detached meanwhile. */
typedef struct publication {
  int broadcaster, transport; /* or NONE */
  int64_t before;
} publication;
publication begin_publication(const choice *c);
void expect_published(const publication *p);

/* A name: 0 to NAMES - 1, or NONE for an invalid one. */
typedef struct name_choice {
  int name;
  const char *text;
} name_choice;
extern const char *const broadcaster_names[NAMES];
name_choice choose_name(uint8_t byte);

/* Allows MULTICAST_ERROR_INVALID_HANDLE, unless the object is alive. */
void allow_handle_error(outcomes *o, const choice *c);
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

/* The errors of a function that calls delegates. */
outcomes errors_of(const choice *c, bool is_missing);

/* Those that the policies of a multicast add for multicast_invoke and multicast_invoke_with. */
void add_refusal(const choice *c, outcomes *errors);

/* Whether the header leaves open if an invocation would begin inside a call of the multicast. */
bool is_place_open(const choice *c);

/* The library has returned from calls: the result must be their number. */
void finish_calls(frame *f, int64_t result);

/* The library has returned: no call may be missing, and the result must be allowed. */
void finish(int64_t result, const outcomes *allowed);

#endif
