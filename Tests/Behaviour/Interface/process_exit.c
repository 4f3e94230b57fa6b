/* The library still works after dlclose() and during exit(). */

#include "process.h"
#include "threads.h"

#include <dlfcn.h>

/* ---- dlclose --------------------------------------------------------------------------------- */

#ifdef MULTICAST_SHARED_LIBRARY
typedef struct library {
  multicast (*create)(void);
  multicast_status (*add)(multicast, multicast_delegate, const multicast_add_options *,
                          multicast_token *);
  int64_t (*invoke)(multicast, uint32_t, const void *, size_t);
  multicast_status (*destroy)(multicast);
} library;

static library opened;
static multicast in_opened;
static gate closed = GATE_INIT, has_invoked = GATE_INIT;

static void *find(void *handle, const char *name) {
  void *found = dlsym(handle, name);
  CHECK(found != NULL);
  return found;
}

static void open_library(void **handle) {
  *handle = dlopen(MULTICAST_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (*handle == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(*handle != NULL);
  *(void **)&opened.create = find(*handle, "multicast_create");
  *(void **)&opened.add = find(*handle, "multicast_add");
  *(void **)&opened.invoke = find(*handle, "multicast_invoke");
  *(void **)&opened.destroy = find(*handle, "multicast_destroy");
}

static void *invoke_before_and_after(void *unused) {
  CHECK_EQ(opened.invoke(in_opened, 0, NULL, 0), 1);
  gate_open(&has_invoked);
  gate_wait(&closed);
  CHECK_EQ(opened.invoke(in_opened, 0, NULL, 0), 1);
  return NULL; /* after this, the library's destructor for this thread runs */
}

TEST(dlclose_while_threads_use_the_library_is_safe) {
  void *handle;
  open_library(&handle);
  in_opened = opened.create();
  CHECK_OK(opened.add(in_opened, counter(&calls), NULL, NULL));
  pthread_t thread = start_thread(invoke_before_and_after, NULL);
  gate_wait(&has_invoked);
  CHECK_EQ(dlclose(handle), 0);
  gate_open(&closed);
  join_thread(thread);
  CHECK_EQ(LOAD(calls), 2);
}

TEST(dlopen_use_and_dlclose_again_and_again) {
  for (int i = 0; i < 100; ++i) {
    void *handle;
    open_library(&handle);
    in_opened = opened.create();
    CHECK_OK(opened.add(in_opened, counter(&calls), NULL, NULL));
    CHECK_EQ(opened.invoke(in_opened, 0, NULL, 0), 1);
    CHECK_OK(opened.destroy(in_opened));
    CHECK_EQ(dlclose(handle), 0);
  }
  CHECK_EQ(calls, 100);
}
#endif

/* ---- exit ------------------------------------------------------------------------------------ */

static void use_at_exit(void) { use_everything(NULL); }

static void end_by_exit(void *unused) {
  CHECK_EQ(atexit(use_at_exit), 0);
  inherited = multicast_create();
  add(inherited, counter(&calls));
  multicast_invoke(inherited, 0, NULL, 0);
  exit(0);
}

TEST(calls_after_main_has_returned_are_harmless) { in_child(end_by_exit, NULL); }

THREAD(invoke_for_ever, void *unused) {
  for (;;) multicast_invoke(inherited, 0, NULL, 0);
}

static void end_while_others_invoke(void *unused) {
  inherited = multicast_create();
  add(inherited, counter(&calls));
  start_thread(invoke_for_ever, NULL);
  pause_ms(5);
  exit(0);
}

TEST(exit_while_other_threads_invoke_is_harmless) {
  for (int i = 0; i < 5; ++i) in_child(end_while_others_invoke, NULL);
}

/* ---- Destruction at exit, while a thread is inside a call ------------------------------------ */

#ifdef __GLIBC__ /* with musl, the library cannot know that exit() has begun */

static blocker at_exit_blocker = BLOCKER_INIT;
static multicast_token token_at_exit;
static multicast_lifetime lifetime_at_exit;
static multicast_broadcaster broadcaster_at_exit;

static void expect_none_waits(void) {
  uint64_t before_ns = now_ns();
  CHECK_ERROR(multicast_token_remove(token_at_exit), TIMEOUT);
  CHECK_ERROR(multicast_remove_every(inherited, blocking(&at_exit_blocker)), TIMEOUT);
  CHECK_EQ(multicast_remove_all(inherited), 1);
  CHECK_ERROR(multicast_lifetime_end(lifetime_at_exit), TIMEOUT);
  CHECK_ERROR(multicast_destroy(inherited), TIMEOUT);
  CHECK_OK(multicast_broadcaster_destroy(broadcaster_at_exit));
  CHECK(now_ns() - before_ns < UINT64_C(5000000000));
}

static void block_and_exit(void *unused) {
  inherited = multicast_create();
  lifetime_at_exit = multicast_lifetime_create();
  broadcaster_at_exit = multicast_broadcaster_create(NULL);
  token_at_exit = add_with(inherited, blocking(&at_exit_blocker),
                           &ADD_OPTIONS(.lifetime = lifetime_at_exit));
  add_with(inherited, counter(&calls), &ADD_OPTIONS(.lifetime = lifetime_at_exit));
  begin_blocked(&at_exit_blocker, inherited);
  CHECK_EQ(atexit(expect_none_waits), 0);
  exit(0);
}

TEST(removals_inside_exit_do_not_wait) { in_child(block_and_exit, NULL); }
#endif
