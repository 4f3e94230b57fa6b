#include "threads.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

const gate shut = GATE_INIT;

void *open_after_a_while(void *to_open) {
  pause_ms(A_WHILE_MS);
  gate_open(to_open);
  return NULL;
}

void let_two_threads_invoke(multicast m) {
  invoker other;
  multicast_invoke(m, 0, NULL, 0);
  invoke_in_background(&other, m);
  invoke_finished(&other);
}

size_t stack_of(size_t size) {
  size_t smallest = (size_t)sysconf(_SC_THREAD_STACK_MIN);
  return size > smallest ? size : smallest;
}

void on_small_stack(void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, stack_of(65536)), 0);
  CHECK_EQ(pthread_create(&thread, &attributes, body, argument), 0);
  join_thread(thread);
}

int count_threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *entry;
  if (tasks == NULL) needs_kernel("a list of threads");
  CHECK(tasks != NULL);
  while ((entry = readdir(tasks)) != NULL) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

moment this_moment(void) {
  struct timespec used;
  moment now;
  CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  now.processor_ns = (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
  now.time_ns = now_ns();
  return now;
}

void expect_to_have_slept(moment since) {
  const moment now = this_moment();
  const uint64_t used = now.processor_ns - since.processor_ns, time = now.time_ns - since.time_ns;
  if (used >= time / 2) CHECK_EQ(used, time / 2);
}
