/* What the header promises, as plain arrays that are searched from end to end. Written from its
 * text and not from the library; one thread only.
 *
 * The model runs along with the library. An operation tells the model what it is about to do and
 * then calls the library; each function that the library calls in turn asks the model whether
 * that was what had to come next; and when the library returns, the model says what the result
 * has to be. */

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
  MANY = 4, /* delegates at most in one add_many or remove_many */
  NAMES = 3,
  FUNCTIONS = 3,
  RELEASES = 2,
  CONTEXTS = 6,
  MULTICASTS = 2 * RECORDS + 8,
  REGISTRATIONS = MANY * RECORDS + 8,
  LIFETIMES = RECORDS,
  QUEUES = RECORDS,
  BROADCASTERS = RECORDS + 1,
  NESTING = 256, /* invocations, visits and runs on one thread */
  FRAMES = RECORDS + 2 * NESTING + 64,
  RECURSIONS = 300
};

/* ---- What there is --------------------------------------------------------------------------- */

typedef struct model_multicast {
  multicast handle;
  bool is_alive;
  int broadcaster; /* whose it is; or NONE */
} model_multicast;

typedef struct model_lifetime {
  multicast_lifetime handle;
  bool is_alive;
} model_lifetime;

/* A call that waits. */
typedef struct model_call {
  int registration;
  uint32_t event;
  const void *payload; /* itself, where `size` is 0 */
  size_t size;
  int seed; /* of the payload's bytes */
} model_call;

typedef struct model_queue {
  multicast_queue handle;
  bool is_alive;
  int capacity;
  multicast_overflow overflow;
  model_call *waiting; /* oldest first; room for `capacity` */
  int descriptor;      /* -1: not asked for yet */
  multicast_queue_stats stats;
} model_queue;

typedef struct model_broadcaster {
  multicast_broadcaster handle;
  bool is_alive;
  int queue;          /* NONE: it has none */
  int targets[NAMES]; /* NONE: nobody has seen a multicast of that name yet */
} model_broadcaster;

/* One delegate in one multicast. They stand in order of addition, and stay when removed. */
typedef struct registration {
  multicast_token token; /* 0: nobody has been told yet */
  int target, lifetime, queue; /* the last two may be NONE */
  int function, context;
  int release; /* which, or NONE */
  bool is_locked; /* with `lock` and `unlock` */
  uint32_t flags;
  int32_t priority;
  uint64_t events;
  bool is_live, is_paused;
  int running; /* calls on the stack */
  int held;    /* the same, from `lock` to `unlock` */
  bool has_been_released;
} registration;

/* A release that has to run before the call of the library during which it came due returns. */
typedef struct due_release {
  int context, release;
  int registration; /* NONE: of an add that failed */
  int frame;
} due_release;

/* An add whose outcome the model does not know yet: memory may be short. */
typedef struct addition {
  int target;      /* NONE: of a name that has none yet */
  int broadcaster; /* NONE: not by register */
  int name;
  const char *name_text;
  int count;
  registration like; /* all but the delegates */
  int functions[MANY], contexts[MANY];
  multicast_token *tokens; /* NULL: not wanted */
  bool is_settled, has_failed;
  int first; /* registration, once it has succeeded */
} addition;

/* ---- What happens ---------------------------------------------------------------------------- */

/* Calls of the library that may call back; they nest. */
typedef enum frame_kind { CHANGE, INVOKE, VISIT, RUN } frame_kind;

typedef enum frame_phase {
  BETWEEN,  /* calls of delegates */
  LOCKING,  /* inside lock */
  LOCKED,   /* the call has to follow */
  CALLING,  /* inside the delegate or visitor */
  UNLOCK,   /* has to follow */
  UNLOCKING /* inside unlock */
} frame_phase;

typedef enum payload_copy { NOT_COPIED, COPIED, NOT_COPYABLE } payload_copy;

typedef struct frame {
  frame_kind kind;
  frame_phase phase;
  int target;  /* INVOKE, VISIT */
  int queue;   /* RUN */
  int newest;  /* registrations from here on were added later */
  int current; /* registration: the one last come to, or NONE */
  bool is_over; /* there is no further one */
  int64_t made; /* the result */
  int64_t budget; /* RUN, VISIT: so many calls at most */
  model_call call; /* with the invoker's or the queue's payload */
  payload_copy copy; /* INVOKE: for the queues */
  addition *adding;  /* CHANGE: NULL where it is none */
  int ending;        /* CHANGE: the broadcaster that is being destroyed, or NONE */
  int64_t failures;  /* of allocations, before */
} frame;

typedef struct model_state {
  model_multicast multicasts[MULTICASTS];
  registration registrations[REGISTRATIONS];
  model_lifetime lifetimes[LIFETIMES];
  model_queue queues[QUEUES];
  model_broadcaster broadcasters[BROADCASTERS];
  int multicast_count, registration_count, lifetime_count, queue_count, broadcaster_count;
  frame frames[FRAMES];
  int depth;   /* frames */
  int nesting; /* frames that are not CHANGE */
  due_release due[REGISTRATIONS + MANY * RECORDS];
  int due_count;
  bool context_is_dead[CONTEXTS]; /* what `lock` says */
  int64_t failures_at_resume;     /* of allocations, when the library was last entered */
  int recursions;                 /* calls that invoke their multicast again */
} model_state;

extern model_state model;

void model_begin(void);
void model_end(void);

/* ---- Multicasts: model.c --------------------------------------------------------------------- */

int model_new_multicast(multicast handle, int broadcaster);

/* The first live registration of a multicast after another (or NONE), in order of invocation, of
 * those below `newest`. NONE: there is no further one. */
int model_next(int target, int after, int newest);
int model_first_equal(int target, int function, int context);
int model_count(int target);

/* Removes it; its release comes due now or when its last call has returned. */
void model_remove(int index);
int model_remove_all(int target);
void model_destroy(int target);

/* What a removal of it, done just before, has to return. */
outcomes model_removal_of(int index);

/* The same, of the first that equals a delegate: equal ones that were removed before count too. */
outcomes model_removal_by_value(int index);

/* ---- Adding: model_add.c --------------------------------------------------------------------- */

/* Does it, once the library has said, or must have known, how it ends. */
void model_settle(addition *a, bool has_failed);

/* As a callback comes: a failure of memory must have been the end of it. */
void model_follow_adding(frame *f);

/* ---- Broadcasters: model_broadcaster.c ------------------------------------------------------- */

/* One multicast after the other is destroyed, in which order the header does not say: does in the
 * model what the library has come to. */
void model_follow_ending(const frame *f);

/* ---- Calls of the library: model_frame.c ----------------------------------------------------- */

frame *model_enter(frame_kind kind);
frame *model_top(void);
void model_leave(void);   /* everything that had to happen meanwhile must have */
void model_resume(void);  /* the library goes on from here */

/* Goes on to the next registration that has to be called or locked; frame->current is it. What
 * is to be queued on the way there is queued. */
void model_advance(frame *f);

void model_call_begins(frame *f);
void model_call_ends(frame *f);
void model_let_go(frame *f); /* no call of it: found dead, or unlocked */

void model_release_is_due(int context, int release, int registration);
/* Takes the newest such release off; registration: whose. */
bool model_take_release(int context, int release, int *registration);

/* The registration being called, innermost, or NONE. False inside a lock or unlock: whose call
 * that is the header does not say. */
bool model_current(int *registration);

/* ---- Queues: model_queue.c ------------------------------------------------------------------- */

void model_queue_call(frame *f, int index);
bool model_queue_take(int queue, model_call *out);
void model_queue_call_is_dead(int queue); /* one that was taken: its context was lost */
void model_queue_take_back(int queue, int index);
bool model_queue_is_waiting(int queue, int index);

#endif
