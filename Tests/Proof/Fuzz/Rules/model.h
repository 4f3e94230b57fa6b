/* The model implements the rules of the header for a single thread, using plain arrays and linear
 * searches. It was written from the text of the header, not from the library's sources.
 *
 * The model runs alongside the library. An operation first changes the model and then calls the
 * library. Each function that the library calls checks against the model that the call is correct
 * at this point. When the library returns, the model determines which results are allowed. */

#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "expect.h"
#include "multicast.h"
#include "record.h"

enum {
  NONE = -1,
  MANY = 4, /* the most delegates in one add_many or remove_many */
  NAMES = 3,
  FUNCTIONS = 3,
  RELEASES = 2,
  CONTEXTS = 6,
  MULTICASTS = 2 * RECORDS + 8,
  REGISTRATIONS = MANY * RECORDS + 8,
  LIFETIMES = RECORDS,
  QUEUES = RECORDS,
  BROADCASTERS = RECORDS + 1,
  TRANSPORTS = RECORDS,
  NESTING = 256, /* the most nested invocations, visits and runs */
  CARGOS = RECORDS,
  FRAMES = RECORDS + 2 * NESTING + 64,
  RECURSIONS = 300
};

/* ---- Objects --------------------------------------------------------------------------------- */

typedef struct model_multicast {
  multicast handle;
  bool is_alive;
  int broadcaster; /* its broadcaster, or NONE */
  bool refuses, is_visit_only;
} model_multicast;

typedef struct model_lifetime {
  multicast_lifetime handle;
  bool is_alive;
} model_lifetime;

/* The payload of an invocation with options, and the state that its queued calls share. */
typedef struct model_cargo {
  void *payload; /* freed when it is released */
  bool has_payload; /* false if the library does not own the payload, or has not yet copied it */
  size_t size;
  bool is_waiting; /* MULTICAST_WAIT */
  int references;  /* by the invocation, by queued calls, and by a call that a queue makes */
  int queued;      /* the number of queued calls */
  int made;        /* the number of calls that have returned */
  int due;         /* the frame in which the release has to run, or NONE */
  bool is_released;
} model_cargo;

/* A queued call. */
typedef struct model_call {
  int registration;
  int cargo; /* or NONE */
  uint32_t event;
  const void *payload; /* if `size` is 0, the original pointer */
  size_t size;
  int seed; /* of the payload's bytes */
} model_call;

typedef struct model_queue {
  multicast_queue handle;
  bool is_alive;
  int capacity;
  multicast_overflow overflow;
  model_call *calls; /* oldest first; room for `capacity` */
  int descriptor;    /* -1 if it has never been requested */
  bool has_wake;
  bool needs_wake;   /* whether `wake` has not been called since the last run */
  bool was_run;      /* a call has begun, so this thread is expected to run the queue */
  int waking;        /* the number of calls to `wake` on the stack */
  bool has_reserve;  /* whether memory for payloads is reserved */
  multicast_queue_stats stats;
} model_queue;

typedef struct model_broadcaster {
  multicast_broadcaster handle;
  bool is_alive;
  int queue;          /* or NONE */
  int targets[NAMES]; /* the multicast of each name; NONE if not yet known */
  int transport;      /* or NONE */
} model_broadcaster;

/* One attachment. */
typedef struct model_transport {
  bool is_attached; /* also false if attaching has failed */
  bool is_released;
  bool is_notified[NAMES];
  bool is_notified_late; /* nesting was too deep, so the next change notifies the transport */
  int64_t published;
} model_transport;

/* One delegate in one multicast. The model's array is in the order of addition and also contains
 * removed delegates. */
typedef struct registration {
  multicast_token token; /* 0 if not known yet */
  int target, lifetime, queue; /* the last two may be NONE */
  int function, context;
  int release; /* its number, or NONE */
  bool is_locked; /* with `lock` and `unlock` */
  uint32_t flags;
  int32_t priority;
  uint64_t events;
  bool is_live, is_paused;
  int running; /* calls on the stack */
  int in_use;  /* calls on the stack, from `lock` to `unlock` */
  bool has_been_released;
} registration;

/* A release that must run before the library returns from the function that caused it. */
typedef struct due_release {
  int context, release;
  int registration; /* NONE if the add failed */
  int frame;
} due_release;

/* An add whose result the model does not know yet, because memory may run out. */
typedef struct addition {
  int target;      /* NONE if the name has no multicast yet */
  int broadcaster; /* NONE unless added by multicast_broadcaster_register */
  int name;
  const char *name_text;
  int count;
  registration like; /* everything but the delegates */
  int functions[MANY], contexts[MANY];
  multicast_token *tokens; /* NULL if not wanted */
  bool is_decided, has_failed;
  int first; /* the first registration, once the add has succeeded */
} addition;

/* ---- Frames ---------------------------------------------------------------------------------- */

/* A frame is a running function of the library that may call back into the target. Frames nest. */
typedef enum frame_kind { CHANGE, INVOKE, VISIT, RUN, PRUNE, ENUMERATE } frame_kind;

typedef enum frame_phase {
  BETWEEN,  /* between calls of delegates */
  LOCKING,  /* inside lock */
  LOCKED,   /* the call must follow */
  CALLING,  /* inside the delegate or visitor */
  UNLOCK,   /* unlock must follow */
  UNLOCKING, /* inside unlock */
  RELEASING /* releasing the payload of a queued call that has returned */
} frame_phase;

/* The next step of an invocation, visit or prune. */
typedef enum next_step { UNKNOWN, TO_CALL, TO_QUEUE, AT_END } next_step;

typedef enum payload_copy { NOT_COPIED, COPIED, NOT_COPYABLE } payload_copy;

typedef struct frame {
  frame_kind kind;
  frame_phase phase;
  int target;  /* all but CHANGE and RUN */
  int queue;   /* RUN */
  int newest;        /* registrations from this one on were added after the frame had begun */
  int current;       /* the registration that is being called or was called last, or NONE */
  int only;          /* INVOKE, VISIT: the only registration that may be called, or NONE */
  next_step next;    /* the step that concerns `current`; not for RUN */
  bool is_over;      /* no call is left */
  int64_t made;      /* the result: the number of calls or of pruned registrations */
  int64_t budget;    /* RUN, VISIT, ENUMERATE: limit of calls */
  model_call call;   /* the current call, with the payload of the invoker or of the queue */
  payload_copy copy; /* INVOKE: the copy for the queues */
  bool has_copier;   /* INVOKE: `copy` makes the copy */
  bool copy_fails;   /* INVOKE: `copy` returns NULL */
  int cargo;         /* INVOKE with options: its cargo, or NONE */
  int row;           /* INVOKE with MULTICAST_WAIT: the queue of the latest calls, or NONE */
  int woken;         /* INVOKE: the queue whose wake has to be called now, or NONE */
  bool has_woken;    /* RUN: the wake has been called at the end of the run */
  bool is_inner;     /* RUN: inside a run of the same queue */
  bool has_ended;    /* the result is known */
  bool has_failed;   /* INVOKE with options: there was no memory for the payload */
  int64_t queued, refused; /* INVOKE: calls */
  int64_t finished, unfinished; /* INVOKE with MULTICAST_WAIT, when it has ended */
  bool is_timeout;   /* MULTICAST_WAIT: a queue that no thread has run still has a call */
  addition *adding;  /* CHANGE: an add, or NULL */
  int ending;        /* CHANGE: the broadcaster that is being destroyed, or NONE */
  int64_t failures;  /* the number of allocations that had failed before the frame began */
} frame;

typedef struct model_state {
  model_multicast multicasts[MULTICASTS];
  registration registrations[REGISTRATIONS];
  model_lifetime lifetimes[LIFETIMES];
  model_queue queues[QUEUES];
  model_broadcaster broadcasters[BROADCASTERS];
  model_transport transports[TRANSPORTS];
  int transport_count;
  bool has_nested_deep; /* nesting has been too deep in the current top-level operation */
  int multicast_count, registration_count, lifetime_count, queue_count, broadcaster_count;
  frame frames[FRAMES];
  int depth;   /* frames */
  int nesting; /* frames that are not CHANGE */
  due_release due[REGISTRATIONS + MANY * RECORDS];
  int due_count;
  model_cargo cargos[CARGOS];
  int releases_inside; /* the number of running releases of contexts and payloads */
  int cargo_count;
  bool context_is_dead[CONTEXTS]; /* `lock` returns NULL */
  int successes;                  /* allocations that will succeed; -1: no limit */
  int recursions;                 /* how many more calls will invoke their multicast again */
} model_state;

extern model_state model;

void model_begin(void);
void model_end(void);

/* ---- Multicasts: model.c --------------------------------------------------------------------- */

int model_new_multicast(multicast handle, int broadcaster);

/* Returns the live registration that an invocation calls after `after`, or first if `after` is
 * NONE. Ignores registrations with an index of `newest` or higher. Returns NONE if none is left. */
int model_next(int target, int after, int newest);
int model_first_equal(int target, int function, int context);
int model_count(int target);

/* Removes a registration. Its release becomes due immediately or, if calls are running, when the
 * last of them returns. */
void model_remove(int index);
int model_remove_all(int target);
void model_destroy(int target);

/* Returns the allowed results of the removal that has just been performed. */
outcomes model_removal_of(int index);

/* Like model_removal_of(), but for the removal of the first equal delegate. Such a removal also
 * depends on running calls to equal delegates that were removed earlier. */
outcomes model_removal_by_value(int index);

/* Selects the delegates of one multicast by function and context. NONE selects any function or any
 * context. */
typedef struct selection {
  int target, function, context;
} selection;

int model_remove_selected(const selection *s); /* returns the number of removed registrations */

/* `must` is true if a removal has to return MULTICAST_PENDING, because calls to removed delegates
 * that match the selection are running. If only `may` is true, the header leaves this open. */
typedef struct pending_calls {
  bool must, may;
} pending_calls;
pending_calls model_pending(const selection *s);
void allow_pending(outcomes *o, const pending_calls *before, const pending_calls *after);

/* ---- Adding: model_add.c --------------------------------------------------------------------- */

/* Called once the result of an add is known. Adds the registrations to the model unless the add has
 * failed. */
void model_finish_adding(addition *a, bool has_failed);

/* Called in a callback during an add. If an allocation has failed, the add has failed, too. */
void model_follow_adding(frame *f);

/* ---- Broadcasters: model_broadcaster.c ------------------------------------------------------- */

/* The header leaves open the order in which a broadcaster destroys its multicasts, so the model
 * adopts the order that the library has chosen. */
void model_follow_ending(const frame *f);

/* ---- Frames: model_frame.c ------------------------------------------------------------------- */

frame *model_enter(frame_kind kind);
frame *model_top(void);
void model_leave(void);  /* expects that no call and no release is missing */
void model_resume(void); /* called when a callback returns to the library */

/* Determines the next step of the frame. */
void model_find_next(frame *f);

/* Sets the frame's `current` to the next registration that has to be called or locked, and queues
 * calls to all preceding registrations that have queues. */
void model_advance(frame *f);

void model_call_begins(frame *f);
void model_call_ends(frame *f);
void model_use_ends(frame *f); /* after unlock, or after a lock that has returned NULL */

void model_release_is_due(int context, int release, int registration);
/* Removes the newest matching release from the due releases. Returns false if no matching release
 * is due. */
bool model_take_release(int context, int release, int *registration);

/* Stores the registration of the innermost call, or NONE. Returns false inside `lock` and `unlock`,
 * where the header does not say which token is current. */
bool model_current(int *registration);

/* ---- Payloads: model_cargo.c ----------------------------------------------------------------- */

int model_new_cargo(size_t size, bool is_waiting);
void model_give_payload(int cargo, void *payload);

/* Releases one reference. Returns whether the payload's release is due now. */
bool model_cargo_unref(int cargo);
bool model_cargos_are_late(const frame *f); /* a release has become due in this frame */

/* Called when a payload is released. Advances the model to the point at which this release is
 * due. */
void model_follow_cargo(frame *f, int cargo);

/* Called in a wake function. Advances the model to the point at which a wake is due, and returns
 * the queue. */
int model_follow_wake(frame *f);

/* Called when a payload is copied. Advances the model to the point at which a copy is due, and
 * returns the cargo. */
int model_follow_copy(frame *f);

/* Returns whether calls are still queued at the end of a run, in which case the library has to call
 * `wake`. */
bool model_wakes_at_end(const frame *f);

/* Called once the invocation has made or queued all its calls. */
void model_end_invocation(frame *f);

/* Called when a queued call has ended, for example after its payload has been released. */
void model_settle(frame *f);

/* Returns whether the library's next allocation succeeds, and counts that allocation. */
bool model_take_memory(void);

/* ---- Queues: model_queue.c ------------------------------------------------------------------- */

void model_queue_call(frame *f, int index);

/* If the next step is to queue a call, queues that call and returns true. */
bool model_queue_next(frame *f);
bool model_queue_take(int queue, model_call *out);
void model_queue_call_is_dead(int queue); /* a call has been taken out, but its context is dead */
void model_queue_cancel(int queue, int index);
bool model_queue_contains(int queue, int index);
int64_t model_queue_clear(int queue); /* returns the number of dropped calls */

#endif
