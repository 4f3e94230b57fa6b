/* Tests a queue's descriptor, the locations in reports, and the end of a process whose threads are
 * using the library. */

#include <multicast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static void check(bool holds, int line) {
  if (holds) return;
  fprintf(stderr, "system.c:%d does not hold\n", line);
  exit(1);
}
#define CHECK(condition) check(condition, __LINE__)

static void count(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  ++*(int *)context;
}

/* A queue's descriptor is the handle of an event object. */
static void wait_for_queue(void) {
  int calls = 0;
  multicast m = multicast_create();
  multicast_queue q = multicast_queue_create(NULL);
  multicast_add_options how = multicast_add_options_default();
  const HANDLE event = (HANDLE)(intptr_t)multicast_queue_fd(q);
  how.queue = q;
  CHECK(multicast_add(m, (multicast_delegate){count, &calls}, &how, NULL) == MULTICAST_OK);
  CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
  CHECK(multicast_invoke(m, 0, NULL, 0) == 1);
  CHECK(WaitForSingleObject(event, 0) == WAIT_OBJECT_0);
  CHECK(multicast_queue_run(q, 0) == 1 && calls == 1);
  CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
  CHECK(multicast_queue_destroy(q) == MULTICAST_OK && multicast_destroy(m) == MULTICAST_OK);
}

/* A report shows an exported function by its name, and any other function by its module. */
static bool search(void *found, const char *line, size_t size) {
  char text[512] = "";
  memcpy(text, line, size < sizeof text ? size : sizeof text - 1);
  if (strstr(text, "multicast.dll(multicast_version+0x0)") != NULL) ((bool *)found)[0] = true;
  if (strstr(text, "program(+0x") != NULL) ((bool *)found)[1] = true;
  return true;
}
static void locate(void) {
  bool found[2] = {false, false};
  int calls = 0;
  multicast m = multicast_create();
  multicast_delegate exported = {NULL, NULL};
  const FARPROC function = GetProcAddress(GetModuleHandleA("multicast.dll"), "multicast_version");
  memcpy(&exported.function, &function, sizeof function);
  CHECK(multicast_add(m, exported, NULL, NULL) == MULTICAST_OK);
  CHECK(multicast_add(m, (multicast_delegate){count, &calls}, NULL, NULL) == MULTICAST_OK);
  (void)multicast_describe(m, search, found);
  CHECK(found[0] && found[1]);
}

/* The process ends while its threads are using the library and may hold the library's locks. */
static DWORD WINAPI use(void *of) {
  multicast m = {*(uint64_t *)of};
  static int calls;
  for (;;) {
    multicast_delegate d = {count, &calls};
    if (multicast_add(m, d, NULL, NULL) != MULTICAST_OK) return 1;
    (void)multicast_invoke(m, 0, NULL, 0);
    (void)multicast_remove_every(m, d);
  }
}
static void leave_threads(void) {
  static uint64_t target;
  target = multicast_create().id;
  for (int i = 0; i < 4; ++i) CHECK(CreateThread(NULL, 0, use, &target, 0, NULL) != NULL);
  (void)multicast_invoke((multicast){target}, 0, NULL, 0);
  Sleep(20);
}

int main(int count_of_arguments, char **arguments) {
  if (count_of_arguments > 1 && strcmp(arguments[1], "exit") == 0) {
    leave_threads();
    return 0;
  }
  wait_for_queue();
  locate();
  puts("events and places work");
  return 0;
}
