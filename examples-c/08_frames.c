/* SPDX-License-Identifier: MIT
 *
 * 08_frames: hands frames of 1 MiB to three consumers on two other threads, without a copy.
 *
 * A producer takes a buffer from a pool of four, fills it, and invokes a multicast with the buffer
 * as the payload. Because the multicast_invocation has a `release` function, the library owns the
 * frame from then on, and every queued call receives the frame itself. After the last call with a
 * frame, `release` returns the buffer to the pool. If the pool is empty, the producer waits for a
 * buffer, so it is never more than four frames ahead.
 *
 * The consumers have two queues, each with its own thread:
 *
 *     preview, detector   on the queue "screen"
 *     recorder            on the queue "disk"
 *
 * Each consumer checks that a frame is at the address at which the producer filled it, that its
 * number is the next one, and that every pixel is correct.
 *
 * Usage: 08_frames [COUNT]
 *
 * Prints the text in expected/08_frames.txt.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_COUNT = 100, MOST_COUNT = 1000000, BUFFERS = 4, FRAME_BYTES = 1024 * 1024 };

static void fail(const char *what, const char *why) {
  fprintf(stderr, "08_frames: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* ---- The protocol --------------------------------------------------------------------------- */

/* The payload is a frame. It does not change until it is released. */
enum { FRAME_READY };

struct frame {
  struct pool *pool;       /* Lets `release`, which gets only the payload, find the pool. */
  struct frame *next_free; /* Used while the frame is in the pool. */
  const struct frame *filled_at; /* A copy of this frame would have another address. */
  uint64_t number;
  unsigned char pixels[FRAME_BYTES];
};

/* ---- The pool ------------------------------------------------------------------------------- */

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t returned;
  struct frame *free;
  int free_count;
  struct frame frames[BUFFERS];
};

static void pool_give_back(struct pool *pool, struct frame *frame) {
  pthread_mutex_lock(&pool->lock);
  frame->next_free = pool->free;
  pool->free = frame;
  pool->free_count += 1;
  pthread_cond_signal(&pool->returned); /* Only the producer waits. */
  pthread_mutex_unlock(&pool->lock);
}

static struct frame *pool_take(struct pool *pool) {
  pthread_mutex_lock(&pool->lock);
  while (pool->free == NULL) pthread_cond_wait(&pool->returned, &pool->lock);
  struct frame *frame = pool->free;
  pool->free = frame->next_free;
  pool->free_count -= 1;
  pthread_mutex_unlock(&pool->lock);
  return frame;
}

/* Waits until no frame is in use. */
static void pool_await_all(struct pool *pool) {
  pthread_mutex_lock(&pool->lock);
  while (pool->free_count < BUFFERS) pthread_cond_wait(&pool->returned, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

static struct pool *pool_create(void) {
  struct pool *pool = calloc(1, sizeof *pool);
  if (pool == NULL) fail("pool", strerror(errno));
  int error = pthread_mutex_init(&pool->lock, NULL);
  if (error == 0) error = pthread_cond_init(&pool->returned, NULL);
  if (error != 0) fail("pool", strerror(error));
  for (int i = 0; i < BUFFERS; i++) {
    pool->frames[i].pool = pool;
    pool_give_back(pool, &pool->frames[i]);
  }
  return pool;
}

static void pool_destroy(struct pool *pool) {
  pthread_cond_destroy(&pool->returned);
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}

/* ---- The consumers, called on the threads of their queues ----------------------------------- */

struct consumer {
  const char *name;
  uint64_t frames;
  uint64_t copied;
  uint64_t out_of_order;
  uint64_t damaged;
};

static void consumer_watch(void *context, uint32_t event, const void *payload, size_t size) {
  struct consumer *consumer = context;
  const struct frame *frame = payload;
  (void)event;
  (void)size;
  if (frame->filled_at != frame) consumer->copied += 1;
  if (frame->number != consumer->frames) consumer->out_of_order += 1;
  const unsigned char *pixels = frame->pixels;
  /* All pixels of a frame are equal. */
  if (pixels[0] != (unsigned char)frame->number ||
      memcmp(pixels, pixels + 1, FRAME_BYTES - 1) != 0) {
    consumer->damaged += 1;
  }
  consumer->frames += 1;
}

static void consumer_add(struct consumer *consumer, multicast ready, multicast_queue queue) {
  multicast_delegate delegate = {consumer_watch, consumer};
  multicast_add_options options = multicast_add_options_default();
  options.queue = queue;
  must("add", multicast_add(ready, delegate, &options, NULL));
}

static void consumer_report(const struct consumer *consumer) {
  printf("%-8s  %6" PRIu64 "  %6" PRIu64 "  %12" PRIu64 "  %7" PRIu64 "\n", consumer->name,
         consumer->frames, consumer->copied, consumer->out_of_order, consumer->damaged);
}

/* ---- The producer --------------------------------------------------------------------------- */

/* Called on the thread on which the last call with this frame has returned. */
static void frame_release(const void *payload, size_t size) {
  struct frame *frame = (struct frame *)payload; /* The producer passed it without `const`. */
  (void)size;
  pool_give_back(frame->pool, frame);
}

/* Fills a frame and hands it over. */
static void produce(struct pool *pool, multicast ready, uint64_t number, uint64_t consumers) {
  struct frame *frame = pool_take(pool);
  frame->filled_at = frame;
  frame->number = number;
  memset(frame->pixels, (unsigned char)number, FRAME_BYTES);

  multicast_invocation invocation = multicast_invocation_default();
  invocation.event = FRAME_READY;
  invocation.payload = frame;
  invocation.size = sizeof *frame;
  invocation.release = frame_release;
  multicast_outcome outcome = multicast_outcome_default();
  int64_t told = multicast_invoke_with(ready, &invocation, &outcome);
  /* From here on, the producer must not touch the frame, which may already be back in the pool. */
  if (told < 0) fail("invoke_with", multicast_status_message(told));
  if (outcome.queued != consumers) fail("invoke_with", "a queue refused a frame");
}

/* ---- Main program --------------------------------------------------------------------------- */

static multicast_queue create_queue(const char *thread_name) {
  multicast_queue_options options = multicast_queue_options_default();
  options.thread_name = thread_name;
  multicast_queue queue = multicast_queue_create(&options);
  if (queue.id == 0) must("queue_create", multicast_create_error());
  must("queue_start", multicast_queue_start(queue));
  return queue;
}

/* Parses a whole number from 1 to MOST_COUNT. Returns 0 for anything else. */
static uint64_t parse_count(const char *text) {
  uint64_t count = 0;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return 0;
    count = count * 10 + (uint64_t)(*text - '0');
    if (count > MOST_COUNT) return 0;
  }
  return count;
}

static void finish_output(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
}

int main(int argc, char **argv) {
  uint64_t count = DEFAULT_COUNT;
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    printf("Usage: 08_frames [COUNT]\n\n"
           "Hands COUNT frames of 1 MiB (1 to %d, default: %d) to three consumers, without a\n"
           "copy, and checks that each gets all of them.\n",
           MOST_COUNT, DEFAULT_COUNT);
    finish_output();
    return EXIT_SUCCESS;
  }
  if (argc > 2) fail(argv[2], "one argument too many; see --help");
  if (argc > 1) count = parse_count(argv[1]);
  if (count == 0) fail(argv[1], "not a number from 1 to 1000000; see --help");

  struct pool *pool = pool_create();
  multicast ready = multicast_create();
  if (ready.id == 0) must("create", multicast_create_error());
  const multicast_queue screen = create_queue("screen");
  const multicast_queue disk = create_queue("disk");
  struct consumer preview = {.name = "preview"};
  struct consumer detector = {.name = "detector"};
  struct consumer recorder = {.name = "recorder"};
  consumer_add(&preview, ready, screen);
  consumer_add(&recorder, ready, disk);
  consumer_add(&detector, ready, screen);

  for (uint64_t number = 0; number < count; number++) produce(pool, ready, number, 3);
  /* A frame returns to the pool when all consumers have seen it. */
  pool_await_all(pool);

  must("destroy", multicast_destroy(ready));
  must("queue_destroy", multicast_queue_destroy(screen));
  must("queue_destroy", multicast_queue_destroy(disk));
  printf("%" PRIu64 " frames of 1 MiB came to 3 consumers: %" PRIu64 " MiB, in %d buffers.\n\n",
         count, preview.frames + detector.frames + recorder.frames, BUFFERS);
  puts("consumer  frames  copied  out of order  damaged");
  consumer_report(&preview);
  consumer_report(&detector);
  consumer_report(&recorder);
  printf("\nAfter the last call %d buffers are in the pool again.\n", pool->free_count);
  pool_destroy(pool);
  finish_output();
  return EXIT_SUCCESS;
}
