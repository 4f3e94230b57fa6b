/* A program without races. A race detector must recognize that the library orders an add before the
 * delegate's calls, and orders these calls before the end of the removal. A detector that did not
 * know this order would report a race on each context. */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 50, PAYLOAD = 100 };

static multicast m;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_over;

static void count(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  ++*(int *)context;
}

static void add_up(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  for (size_t i = 0; i < size; ++i) *(int *)context += ((const char *)payload)[i];
}

static void pause_us(long us) {
  struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static bool go_on(void) {
  pthread_mutex_lock(&mutex);
  bool result = !is_over;
  pthread_mutex_unlock(&mutex);
  return result;
}

static void *invoke(void *unused) {
  char payload[PAYLOAD] = {1};
  while (go_on()) {
    payload[1] = 1;
    multicast_invoke(m, 0, payload, sizeof payload);
    pause_us(100);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  int called = 0, run = 0;
  multicast_queue queue = multicast_queue_create(NULL);
  m = multicast_create();
  pthread_create(&thread, NULL, invoke, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    int *context = calloc(2, sizeof *context);
    if (context == NULL) return 1;
    multicast_add_options how = multicast_add_options_default();
    multicast_delegate direct = {count, &context[0]};
    multicast_delegate queued = {add_up, &context[1]};
    how.queue = queue;
    multicast_add(m, direct, NULL, NULL);
    multicast_add(m, queued, &how, NULL);
    pause_us(1000);
    multicast_queue_run(queue, 0);
    if (multicast_remove_every(m, direct) != MULTICAST_OK) return 1;
    if (multicast_remove_every(m, queued) != MULTICAST_OK) return 1;
    called += context[0], run += context[1];
    free(context);
  }
  pthread_mutex_lock(&mutex);
  is_over = true;
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  if (multicast_destroy(m) != MULTICAST_OK || multicast_queue_destroy(queue) != MULTICAST_OK)
    return 1;
  printf("%s\n", called > 0 && run > 0 ? "called" : "NOT CALLED");
  return 0;
}
