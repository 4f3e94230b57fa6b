/* The memory that the processes of this test share. The memory contains a place for each process of
 * the group. When a process is killed, a new process takes its place. Each process that has
 * occupied a place is called a life of that place. */

#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  PUBLISHERS = 3, /* the first places */
  PLACES = 6,
  REFUSES = 0, /* these publishers are named after their overflow policies */
  BLOCKS = 1,
  DROPS = 2,
  SLOW = 5, /* a subscriber */
  LIVES_KEPT = 64,
  DELAYS_MAX = 1 << 20
};

/* A process that has occupied a place. The process writes `begun` and `returned`, and the test
 * writes `killed_at`. */
typedef struct life {
  uint64_t begun, returned; /* numbers of publications */
  uint64_t killed_at;       /* in nanoseconds; 0 if it was not killed */
} life;

typedef enum task { GO_ON, LEAVE_SOON, STOP_IN_PUBLISH } task;

typedef struct place {
  _Alignas(64) pid_t process;
  uint32_t number; /* of the current life, from 1 */
  task task;
  life lives[LIVES_KEPT];
  /* The process writes these. */
  bool is_settled;                   /* the process has flushed */
  uint32_t met[PLACES], gone[PLACES]; /* the newest life reported to the process */
  uint32_t here[PLACES]; /* number of lives that have joined and not ended */
  uint64_t arrived, lost, refusals;
} place;

typedef struct world {
  place places[PLACES];
  bool has_to_end;
  unsigned delays;             /* number of delays */
  float delay_ms[DELAYS_MAX]; /* times from each kill to each report of the kill */
} world;

extern world *the_world;
extern const char *directory; /* of the group */

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)

uint64_t time_now(void);
void pause_us(long us);
/* Prints the failure and ends the process with status 1. */
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

/* Runs the process of a place. Does not return. */
void live(int place);

#endif
