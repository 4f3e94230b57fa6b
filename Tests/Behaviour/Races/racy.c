/* Detectors must report the race in this program, in which two threads call a delegate that counts
 * without a lock. */

#include <multicast.h>

#include <pthread.h>
#include <stdio.h>

static multicast m;
static int calls;

static void race(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  ++calls;
}

static void *invoke(void *unused) {
  for (int i = 0; i < 200; ++i) multicast_invoke(m, 0, NULL, 0);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  multicast_delegate delegate = {race, NULL};
  m = multicast_create();
  if (multicast_add(m, delegate, NULL, NULL) != MULTICAST_OK) return 1;
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, invoke, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("called\n");
  return 0;
}
