/* Broadcasters, their names and their observers. */

#ifndef BROADCASTERS_H
#define BROADCASTERS_H

#include "harness.h"
#include "numbers.h"

/* ---- Creation -------------------------------------------------------------------------------- */

multicast_broadcaster create(void);
multicast_queue create_queue(void);
multicast_broadcaster create_on(multicast_queue q);

/* ---- Names ----------------------------------------------------------------------------------- */

/* What most tests notify of, and the most bytes of a name. */
#define NAME "UpdateTitle"
enum { LONGEST = 255 };

/* A name of many. The text is good until this thread asks for four others. */
const char *numbered(const char *prefix, int number);
multicast find(multicast_broadcaster b, const char *name);
int64_t notify(multicast_broadcaster b, const char *name);

/* ---- Observers ------------------------------------------------------------------------------- */

/* Counted by observers of which there is no more to know. */
extern int calls;

multicast_token observe(multicast_broadcaster b, const char *name, multicast_delegate d);
multicast_token observe_with(multicast_broadcaster b, const char *name,
                             multicast_delegate d, const multicast_options *options);

/* An observer whose calls and releases are counted apart. */
typedef struct observer {
  int calls;
  int releases;
} observer;
void release_observer(void *context);
multicast_delegate observing(observer *o);

/* ---- The end --------------------------------------------------------------------------------- */

/* No function does anything with it. */
void expect_stale(multicast_broadcaster b);

/* ---- Threads and forks ----------------------------------------------------------------------- */

/* Where the threads of a test, or parent and child, meet, and the end of what they do there. */
extern multicast_broadcaster shared;
extern bool is_over;

/* Filled in by name_the_shared; look_up_all_the_time expects each to stay what it is. */
enum { SHARED_NAMES = 8 };
extern char shared_names[SHARED_NAMES][32];

void name_the_shared(void);
void *look_up_all_the_time(void *unused);

/* The multicasts that there are by now: as many as growing_count says. */
enum { GROWING = 20000 };
extern uint64_t growing_ids[GROWING];
extern int growing_count;

#endif
