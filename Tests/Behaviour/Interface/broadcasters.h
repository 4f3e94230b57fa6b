/* Broadcasters, names and observers for tests. */

#ifndef BROADCASTERS_H
#define BROADCASTERS_H

#include "numbers.h"

/* ---- Creation -------------------------------------------------------------------------------- */

multicast_broadcaster create(void);

#define TEST_OF_BROADCASTER(NAME) TEST_OF(NAME, (multicast_broadcaster b), (create()))

multicast_queue create_queue(void);
multicast_broadcaster create_on(multicast_queue q);

/* ---- Names ----------------------------------------------------------------------------------- */

/* NAME is the name that most tests use, and LONGEST is the maximum length of a name. */
#define NAME "UpdateTitle"
enum { LONGEST = 255 };

/* Returns the prefix followed by the number. The text remains valid until the fourth subsequent
 * call on the same thread. */
const char *numbered(const char *prefix, int number);
multicast find(multicast_broadcaster b, const char *name);
int64_t notify(multicast_broadcaster b, const char *name);

/* ---- Observers ------------------------------------------------------------------------------- */

multicast_token observe(multicast_broadcaster b, const char *name, multicast_delegate d);
multicast_token observe_with(multicast_broadcaster b, const char *name,
                             multicast_delegate d, const multicast_add_options *options);

/* An observer that counts its calls and its releases. */
typedef struct observer {
  int calls;
  int releases;
} observer;
void release_observer(void *context);
multicast_delegate observing(observer *o);

/* ---- Threads and forks ----------------------------------------------------------------------- */

/* The broadcaster shared by several threads, or by parent and child, and a flag that tells them to
 * stop. */
extern multicast_broadcaster shared;
extern bool is_over;

/* name_the_shared() fills in the names. look_up_all_the_time() looks up these names until `is_over`
 * is set, and expects each name to keep its multicast. */
enum { SHARED_NAMES = 8 };
extern char shared_names[SHARED_NAMES][32];

void name_the_shared(void);
void *look_up_all_the_time(void *unused);

/* The first `growing_count` elements are the handles of the multicasts that exist so far. */
enum { GROWING = 20000 };
extern uint64_t growing_ids[GROWING];
extern int growing_count;

#endif
