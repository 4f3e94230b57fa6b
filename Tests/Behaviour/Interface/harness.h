/* A small test harness: named tests, checks that print the values that they compare, helpers for
 * threads.
 *
 * A test is TEST(name) { ... } in any file. Each test runs in a process of its own, so that it may
 * replace the allocator, fork or leave threads behind. See main.c for the command line. */

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

/* TEST_OF_MULTICAST(name) { ... }: a test that has an empty multicast, `m`. There is also one that
 * has a queue `q` beside it (queues.h), and one that has a broadcaster `b` (broadcasters.h). */
#define TEST_OF_MULTICAST(NAME) TEST_OF(NAME, (multicast m), (multicast_create()))
#define TEST_OF(NAME, PARAMETERS, ARGUMENTS)                                   \
  static void NAME##_of PARAMETERS;                                            \
  TEST(NAME) { NAME##_of ARGUMENTS; }                                          \
  static void NAME##_of PARAMETERS

/* A check that fails ends the test at once. Checks may be used on any thread. */
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

/* Of the table that the test goes through: a check that fails prints it. -1: none. */
extern int row;

/* ---- Threads --------------------------------------------------------------------------------- */

/* Something that happens once. Threads can wait for it. */
typedef struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  bool is_open;
} gate;

#define GATE_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}

void gate_open(gate *g);
void gate_wait(gate *g);               /* fails the test after 20 s */
bool gate_opens_within(gate *g, int milliseconds);

/* Long enough for another thread to do what it must not do. */
enum { A_WHILE_MS = 40 };

/* THREAD(name, PARAMETER) { ... }: the body of a thread, with a parameter of any pointer type. */
#define THREAD(NAME, PARAMETER)                                                \
  static void NAME##_with(PARAMETER);                                          \
  static void *NAME(void *argument) {                                          \
    NAME##_with(argument);                                                     \
    return NULL;                                                               \
  }                                                                            \
  static void NAME##_with(PARAMETER)

pthread_t start_thread(void *(*body)(void *), void *argument);
void join_thread(pthread_t thread);    /* fails the test after 20 s */

/* Runs a body on another thread and waits for it. */
void on_another_thread(void *(*body)(void *), void *argument);

void pause_ms(int milliseconds);

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

/* ---- Delegates ------------------------------------------------------------------------------- */

#define DELEGATE(FUNCTION, CONTEXT) ((multicast_delegate){FUNCTION, CONTEXT})

/* FUNCTION(name, CONTEXT) { ... }: the function of a delegate, whose context is any pointer. */
#define FUNCTION(NAME, CONTEXT)                                                \
  static void NAME##_with(CONTEXT, uint32_t event, const void *payload, size_t size); \
  static void NAME(void *context, uint32_t event, const void *payload, size_t size) { \
    NAME##_with(context, event, payload, size);                                \
  }                                                                            \
  static void NAME##_with(CONTEXT, uint32_t event, const void *payload, size_t size)

/* Counts its calls in the int that is its context. */
void count_call(void *context, uint32_t event, const void *payload, size_t size);

void call_nothing(void *context, uint32_t event, const void *payload, size_t size);
void end_this_thread(void *context, uint32_t event, const void *payload, size_t size);

/* For the options of an add: a context that is dead, or is its own strong pointer. */
void *lock_dead(void *context);
void *lock_same(void *context);
void unlock_nothing(void *strong);

/* The body of a thread: removes the registration of a multicast_token. */
void *remove_token(void *token);

/* A second function, for delegates that differ in the function only. */
void count_call_too(void *context, uint32_t event, const void *payload, size_t size);

/* Counts releases in the int that is its context. */
void count_release(void *context);

multicast_delegate counter(int *calls);

#ifndef __cplusplus
/* For tests that count one thing. */
extern int calls;
#endif

/* Appends its letter to a text. */
typedef struct letter {
  char *text;
  char name;
} letter;
void write_letter(void *context, uint32_t event, const void *payload, size_t size);
multicast_delegate writer(letter *l);

/* A thread that invokes once. */
typedef struct invoker {
  multicast target;
  int64_t result;
  pthread_t thread;
} invoker;
void invoke_in_background(invoker *i, multicast m);
int64_t invoke_finished(invoker *i);

/* Its call returns once `let_go` is open. */
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

/* Another thread invokes, and is in the call; the end of both returns what the invocation does. */
void begin_blocked(blocker *b, multicast m);
int64_t end_blocked(blocker *b);

/* Adds, and expects that to succeed. */
multicast_token add(multicast m, multicast_delegate d);
multicast_token add_with(multicast m, multicast_delegate d, const multicast_add_options *options);

/* The default of a struct, but for the fields that are given: ADD_OPTIONS(.priority = 3). */
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

/* The statistics of the queue. Fails the test if they do not add up. */
multicast_queue_stats stats_of(multicast_queue q);

bool is_readable(int descriptor);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Has the library use an allocator that counts, fills blocks with a pattern, fails when told to,
 * and checks that each block is returned with its size and alignment. */
void use_test_allocator(void);

/* A test of a multicast `m` whose memory is counted. */
#define TEST_OF_MEMORY(NAME) \
  TEST_OF(NAME, (multicast m), ((use_test_allocator(), multicast_create())))
extern int64_t allocated_bytes;
extern int64_t allocated_blocks;
extern int fail_after;      /* so many allocations succeed, then... (-1: all do) */
extern bool fail_only_once; /* ...one fails, or all that follow */
extern bool has_failed;

/* ---- The process ----------------------------------------------------------------------------- */

/* From now on the kernel refuses membarrier with EPERM. */
void deny_membarrier(void);
void end_by_membarrier(void);      /* a call of membarrier ends the process */
void count_membarriers(void);      /* of this thread and those that it starts from now on */
int membarriers(void);             /* how many there were since this was called last */
bool is_without_membarrier(void); /* for all tests of this run */

/* In a child, the thread sanitizer takes locks of the parent as held, and starts no thread if the
 * parent had several. The allocator of the address sanitizer may have been in use by another
 * thread, and a new thread needs it. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IS_WITHOUT_THREADS_IN_CHILDREN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_WITHOUT_THREADS_IN_CHILDREN
#endif
#endif

/* Runs a body in a child, and expects the child to exit with status 0. */
void in_child(void (*body)(void *), void *argument);

#endif
