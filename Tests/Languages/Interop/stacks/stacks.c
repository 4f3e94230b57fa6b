/* A program whose delegate causes a tool to report a stack. The stack contains `main`, `caller`,
 * functions of the library, and `delegate`. */

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "multicast.h"

static const char *what;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static multicast target;
static multicast_queue queue;
static volatile int is_inside;
static int is_over;

/* These functions are not static, because backtrace_symbols_fd() knows only exported names. */
void delegate(void *context, uint32_t event, const void *payload, size_t size);
void caller(void);

static void print_stack(void) {
  void *addresses[64];
  backtrace_symbols_fd(addresses, backtrace(addresses, 64), STDOUT_FILENO);
}

static void write_behind_a_block(void) {
  volatile char *block = malloc(10);
  if (block == NULL) abort();
  block[10] = 1;
  free((void *)block);
}

static void work(void) {
  const clock_t end = clock() + CLOCKS_PER_SEC / 2;
  while (clock() < end) {
    volatile int i;
    for (i = 0; i < 100000; ++i) {
    }
  }
}

void delegate(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  if (strcmp(what, "print") == 0) print_stack();
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "write") == 0) write_behind_a_block();
  if (strcmp(what, "work") == 0) work();
  if (strcmp(what, "hang") == 0) {
    is_inside = 1;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
  }
  if (strcmp(what, "share") == 0 && context != NULL) {
    __atomic_store_n(&is_inside, *(int *)context, __ATOMIC_RELAXED);
  }
  __asm__ __volatile__("" ::: "memory"); /* prevents the compiler from making a tail call */
}

static void *invoke(void *unused) {
  multicast_invoke(target, 0, NULL, 0);
  return unused;
}

/* Creates a deadlock. A removal waits for a call, which waits for a lock that the removing thread
 * holds. */
static void hang(void) {
  const multicast_delegate d = {delegate, NULL};
  pthread_t thread;
  pthread_mutex_lock(&lock);
  if (pthread_create(&thread, NULL, invoke, NULL) != 0) exit(2);
  while (!is_inside) usleep(1000);
  alarm(1); /* makes a debugger stop in the removal */
  multicast_remove(target, d);
}

static void *invoke_until_over(void *unused) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) multicast_invoke(target, 0, NULL, 0);
  return unused;
}

/* This thread accesses the context before the add and after the removal, and another thread
 * accesses it in calls. Only the library orders these accesses. */
static void share(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, invoke_until_over, NULL) != 0) exit(2);
  int *context = malloc(sizeof *context);
  const multicast_delegate d = {delegate, context};
  if (context == NULL) exit(2);
  *context = 1;
  if (multicast_add(target, d, NULL, NULL) != MULTICAST_OK) exit(2);
  while (!__atomic_load_n(&is_inside, __ATOMIC_RELAXED)) usleep(1000);
  if (multicast_remove_every(target, d) != MULTICAST_OK) exit(2);
  free(context);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  puts("shared");
}

void caller(void) {
  if (strcmp(what, "hang") == 0) {
    hang();
  } else if (strcmp(what, "share") == 0) {
    share();
  } else {
    multicast_invoke(target, 0, NULL, 0);
    multicast_queue_run(queue, 1);
  }
  __asm__ __volatile__("" ::: "memory");
}

int main(int count, char **arguments) {
  const multicast_delegate d = {delegate, NULL};
  multicast_add_options options = MULTICAST_ADD_OPTIONS_INIT;
  if (count != 3) {
    fprintf(stderr, "Usage: stacks invoke|queue print|abort|write|work|hang|share\n");
    return 2;
  }
  what = arguments[2];
  target = multicast_create();
  if (strcmp(arguments[1], "queue") == 0) options.queue = queue = multicast_queue_create(NULL);
  if (multicast_add(target, d, &options, NULL) != MULTICAST_OK) return 2;
  caller();
  return 0;
}
