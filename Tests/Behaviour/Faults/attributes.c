/* Starting a worker fails cleanly if pthread_attr_init() fails, for example because libc has no
 * memory for the attributes. */

#include "system.h"

#include <errno.h>

static bool are_refused;

/* Replaces libc's function of this name. Fails while `are_refused` is set; otherwise calls libc's
 * function. */
int pthread_attr_init(pthread_attr_t *attributes) {
  int (*real)(pthread_attr_t *);
  if (LOAD(are_refused)) return ENOMEM;
  *(void **)&real = next_one("pthread_attr_init");
  return real(attributes);
}

TEST(attributes_of_a_thread_refused_starts_none_and_works_later) {
  int calls = 0;
  multicast m = multicast_create();
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(m, counter(&calls), q);
  STORE(are_refused, true);
  CHECK_ERROR(multicast_queue_start(q), SYSTEM);
  STORE(are_refused, false);
  CHECK_ERROR(multicast_queue_stop(q), STATE);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  EVENTUALLY(LOAD(calls) == 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}
