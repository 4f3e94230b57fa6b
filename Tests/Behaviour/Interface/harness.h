/* A small test harness with named tests, checks that print the compared values, and helpers for
 * threads.
 *
 * TEST(name) { ... } in any file defines a test. Each test runs in its own process, so it may
 * replace the allocator, fork or leave threads behind. main.c describes the command line. */

#ifndef HARNESS_H
#define HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "multicast.h"

typedef struct test {
  const char *name;
  const char *file;
  void (*run)(void);
  struct test *next;
} test;

void test_register(test *registered);

#define TEST(NAME)                                                             \
  static void NAME(void);                                                      \
  __attribute__((constructor)) static void register_##NAME(void) {             \
    static test registered = {#NAME, __FILE__, NAME, NULL};                    \
    test_register(&registered);                                                \
  }                                                                            \
  static void NAME(void)

/* TEST_OF_MULTICAST(name) { ... }: a test with an empty multicast `m`. TEST_OF_QUEUE in queues.h
 * also provides a queue `q`, and TEST_OF_BROADCASTER in broadcasters.h a broadcaster `b`. */
#define TEST_OF_MULTICAST(NAME) TEST_OF(NAME, (multicast m), (multicast_create()))
#define TEST_OF(NAME, PARAMETERS, ARGUMENTS)                                   \
  static void NAME##_of PARAMETERS;                                            \
  TEST(NAME) { NAME##_of ARGUMENTS; }                                          \
  static void NAME##_of PARAMETERS

/* A failed check ends the test immediately. Checks may be used on any thread. */
__attribute__((noreturn)) void check_failed(const char *file, int line, const char *expression,
                                            const char *detail);
void check_equal(const char *file, int line, const char *left, const char *right, int64_t a,
                 int64_t b);
void check_status(const char *file, int line, const char *expression, int64_t got, int64_t wanted);
void check_text(const char *file, int line, const char *left, const char *a, const char *b);

#define CHECK(expression)                                                      \
  ((expression) ? (void)0 : check_failed(__FILE__, __LINE__, #expression, "is false"))
#define CHECK_EQ(a, b) check_equal(__FILE__, __LINE__, #a, #b, (int64_t)(a), (int64_t)(b))
#define CHECK_STATUS(a, b) check_status(__FILE__, __LINE__, #a, (int64_t)(a), (int64_t)(b))
#define CHECK_OK(a) check_status(__FILE__, __LINE__, #a, (int64_t)(a), MULTICAST_OK)
#define CHECK_ERROR(a, NAME)                                                   \
  check_status(__FILE__, __LINE__, #a, (int64_t)(a), MULTICAST_ERROR_##NAME)
#define CHECK_TEXT(a, b) check_text(__FILE__, __LINE__, #a, a, b)

/* The current row of a table-driven test, or -1 for other tests. Failed checks print the row. */
extern int row;

/* ---- Threads --------------------------------------------------------------------------------- */

/* A gate represents an event that happens once, and for which threads can wait. */
typedef struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  bool is_open;
} gate;

#define GATE_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}

void gate_open(gate *g);
void gate_wait(gate *g);               /* fails the test after 20 s */
bool gate_opens_within(gate *g, int milliseconds);

/* How long a test waits before it concludes that another thread is not going to act. */
enum { A_WHILE_MS = 40 };

/* THREAD(name, PARAMETER) { ... }: defines the body of a thread. Its parameter can be any
 * pointer. */
#define THREAD(NAME, PARAMETER)                                                \
  static void NAME##_with(PARAMETER);                                          \
  static void *NAME(void *argument) {                                          \
    NAME##_with(argument);                                                     \
    return NULL;                                                               \
  }                                                                            \
  static void NAME##_with(PARAMETER)

pthread_t start_thread(void *(*body)(void *), void *argument);
void join_thread(pthread_t thread);    /* fails the test after 20 s */

/* Runs the body on another thread and waits until it has returned. */
void on_another_thread(void *(*body)(void *), void *argument);

void pause_ms(int milliseconds);

/* draw() returns a pseudo-random number below `below`. Each thread gets the same sequence, unless
 * it changes its seed. */
extern __thread uint64_t seed_of_draw;
uint32_t draw(uint32_t below);

/* Waits until another thread has made the condition true. */
#define EVENTUALLY(condition)                                                  \
  do {                                                                         \
    int spins = 0;                                                             \
    while (!(condition)) {                                                     \
      if (++spins > 20000) check_failed(__FILE__, __LINE__, #condition, "stays false"); \
      pause_ms(1);                                                             \
    }                                                                          \
  } while (0)

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define STORE(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define ADD(variable, value) __atomic_add_fetch(&(variable), (value), __ATOMIC_SEQ_CST)

/* 2^32 plus a small number, or about half of SIZE_MAX if a size_t has only 32 bits. */
#define ABOVE_32_BITS(number) \
  (SIZE_MAX > UINT32_MAX ? (size_t)(UINT64_C(1) << 32) + (number) : SIZE_MAX / 2 + 9 + (number))

/* ---- Delegates ------------------------------------------------------------------------------- */

#define DELEGATE(FUNCTION, CONTEXT) ((multicast_delegate){FUNCTION, CONTEXT})

/* FUNCTION(name, CONTEXT) { ... }: defines the function of a delegate. Its context can be any
 * pointer. */
#define FUNCTION(NAME, CONTEXT)                                                \
  static void NAME##_with(CONTEXT, uint32_t event, const void *payload, size_t size); \
  static void NAME(void *context, uint32_t event, const void *payload, size_t size) { \
    NAME##_with(context, event, payload, size);                                \
  }                                                                            \
  static void NAME##_with(CONTEXT, uint32_t event, const void *payload, size_t size)

/* The function of a delegate that increments the int to which its context points. */
void count_call(void *context, uint32_t event, const void *payload, size_t size);

void call_nothing(void *context, uint32_t event, const void *payload, size_t size);
void end_this_thread(void *context, uint32_t event, const void *payload, size_t size);

/* Functions for `lock` and `unlock`. lock_dead() reports that the context is dead; lock_same()
 * returns the context itself as the strong pointer. */
void *lock_dead(void *context);
void *lock_same(void *context);
void unlock_nothing(void *strong);

/* The body of a thread that removes a registration. The argument points to its multicast_token. */
void *remove_token(void *token);

/* Like count_call(), for tests that need two delegates with different functions and the same
 * context. */
void count_call_too(void *context, uint32_t event, const void *payload, size_t size);

/* A `release` function that increments the int to which its context points. */
void count_release(void *context);

multicast_delegate counter(int *calls);

#ifndef __cplusplus
/* A counter for tests that need only one. */
extern int calls;
#endif

/* The context of a delegate that appends its letter `name` to a text. */
typedef struct letter {
  char *text;
  char name;
} letter;
void write_letter(void *context, uint32_t event, const void *payload, size_t size);
multicast_delegate writer(letter *l);

/* A thread that invokes a multicast once. */
typedef struct invoker {
  multicast target;
  int64_t result;
  pthread_t thread;
} invoker;
void invoke_in_background(invoker *i, multicast m);
int64_t invoke_finished(invoker *i);

/* The context of a delegate whose call returns once `let_go` has been opened. */
typedef struct blocker {
  gate entered;
  gate let_go;
  int calls;
  int releases;
  bool has_left; /* set at the end of the call */
  invoker invoking;
} blocker;
#define BLOCKER_INIT {GATE_INIT, GATE_INIT, 0, 0, false, {{0}, 0, 0}}
void block_call(void *context, uint32_t event, const void *payload, size_t size);
void release_blocker(void *context);
multicast_delegate blocking(blocker *b);

/* begin_blocked() starts an invocation on another thread, which stays inside the call to `b`.
 * end_blocked() lets the call return, and returns the invocation's result. */
void begin_blocked(blocker *b, multicast m);
int64_t end_blocked(blocker *b);

/* Adds the delegate, and expects success. */
multicast_token add(multicast m, multicast_delegate d);
multicast_token add_with(multicast m, multicast_delegate d, const multicast_add_options *options);

/* A struct with the given fields, as in ADD_OPTIONS(.priority = 3). All other fields have their
 * defaults. */
#define WITH_FIELDS(TYPE, ...) ((TYPE){.struct_size = (uint32_t)sizeof(TYPE), __VA_ARGS__})
#define ADD_OPTIONS(...) WITH_FIELDS(multicast_add_options, __VA_ARGS__)
#define QUEUE_OPTIONS(...) WITH_FIELDS(multicast_queue_options, __VA_ARGS__)
#define CREATE_OPTIONS(...) WITH_FIELDS(multicast_create_options, __VA_ARGS__)
#define BROADCASTER_OPTIONS(...) WITH_FIELDS(multicast_broadcaster_options, __VA_ARGS__)
#define INVOCATION(...) WITH_FIELDS(multicast_invocation, __VA_ARGS__)
#define WATCH_WITH(...) WITH_FIELDS(multicast_watch, __VA_ARGS__)
#define TRANSPORT_WITH(...) WITH_FIELDS(multicast_transport, __VA_ARGS__)

/* ---- Queues ---------------------------------------------------------------------------------- */

multicast_queue queue_with(uint32_t capacity, multicast_overflow overflow);
multicast_token add_queued(multicast m, multicast_delegate d, multicast_queue q);

/* Returns the statistics of the queue. Fails the test if they are inconsistent. */
multicast_queue_stats stats_of(multicast_queue q);

bool is_readable(int descriptor);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Makes the library use an allocator that counts allocations, fills blocks with a pattern, fails on
 * request, and checks that each block is returned with its original size and alignment. */
void use_test_allocator(void);

/* Defines a test with an empty multicast `m` that uses the test allocator. */
#define TEST_OF_MEMORY(NAME) \
  TEST_OF(NAME, (multicast m), ((use_test_allocator(), multicast_create())))
extern int64_t allocated_bytes;
extern int64_t allocated_blocks;
extern int fail_after;      /* allocations before the first failure; -1: no failure */
extern bool fail_only_once; /* true: only this allocation fails; false: all later ones fail, too */
extern bool has_failed;

/* ---- The process ----------------------------------------------------------------------------- */

/* Makes all later calls to membarrier fail with EPERM. */
void deny_membarrier(void);
void end_by_membarrier(void);      /* makes any call to membarrier end the process */
void count_membarriers(void); /* counts calls on this thread and on threads that it starts later */
int membarriers(void); /* returns the number of calls since the previous membarriers() */
bool is_without_membarrier(void); /* true if the whole run denies membarrier */

/* Returns whether the library uses only POSIX, according to the option --posix. */
bool is_posix(void);
/* Called by a test that needs Linux. Ends the test if the library uses only POSIX. The harness
 * lists and counts the tests that this function has ended. */
void needs_linux(const char *what);
/* Like needs_linux(), but ends the test only if the system is not Linux. */
void needs_kernel(const char *what);

/* Defined if the child of a fork cannot start threads. The thread sanitizer assumes that the
 * parent's locks are still held in the child, and refuses to create threads in the child if the
 * parent had several threads. Under the address sanitizer, a new thread allocates memory, but
 * another thread may have been holding the allocator's lock at the fork. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IS_WITHOUT_THREADS_IN_CHILDREN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_WITHOUT_THREADS_IN_CHILDREN
#endif
#endif

/* Flushes all output and forks. Returns the child's process ID, or 0 in the child. */
pid_t begin_child(void);

/* Waits for a child and returns its exit status, or the negative number of the signal that ended
 * it. Kills the child if it hangs. */
int end_of_child(pid_t child);

/* Forks a child that runs the body, and expects it to exit with status 0. */
void in_child(void (*body)(void *), void *argument);

#endif
