/* What the processes of this test share: a group has a place for each. Whoever is killed is
 * followed by another process, the next life of the place. */

#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  PUBLISHERS = 3, /* the first places */
  PLACES = 6,
  REFUSES = 0, /* the publishers, by their policy */
  BLOCKS = 1,
  DROPS = 2,
  SLOW = 5, /* a subscriber */
  LIVES_KEPT = 64,
  DELAYS_MAX = 1 << 20
};

/* A process. It writes `begun` and `returned`, the test the others. */
typedef struct life {
  uint64_t begun, returned; /* how many publications */
  uint64_t killed_at;       /* in nanoseconds; 0: it was not */
} life;

typedef enum task { GO_ON, LEAVE_SOON, STOP_IN_PUBLISH } task;

typedef struct place {
  _Alignas(64) pid_t process;
  uint32_t number; /* of its life, from 1 */
  task task;
  life lives[LIVES_KEPT];
  /* The process writes these. */
  bool is_settled;                   /* it has flushed */
  uint32_t met[PLACES], gone[PLACES]; /* the newest life that it was told of */
  uint32_t here[PLACES]; /* so many lives have joined, and have not gone */
  uint64_t arrived, lost, refusals;
} place;

typedef struct world {
  place places[PLACES];
  bool has_to_end;
  unsigned delays;             /* how many */
  float delay_ms[DELAYS_MAX]; /* from before kill() until a process was told */
} world;

extern world *the_world;
extern const char *directory; /* of the group */

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)

uint64_t time_now(void);
void pause_us(long us);
/* Says what is wrong, and ends the process with 1. */
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

/* The life of a process, which does not return. */
void live(int place);

#endif
