/* SPDX-License-Identifier: MIT
 *
 * 07_epoll: an event loop with epoll, which handles the lines that another thread reads.
 *
 * The loop watches two descriptors: the descriptor of a queue, which is readable while calls are
 * waiting in the queue, and the descriptor of a timer. Another thread reads standard input, because
 * reading may block and epoll cannot watch files. It broadcasts every line under the name "Input".
 * Between its waits for events, the loop calls the observers of that name:
 *
 *     printer   prints every line with its number
 *     counter   counts lines and bytes
 *     loop      ends the loop after all lines, when the input has ended
 *
 * No line is lost. If lines are read faster than they are printed, the queue becomes full, and
 * MULTICAST_OVERFLOW_BLOCK makes the reader wait. A line of more than a thousand bytes is
 * truncated.
 *
 * Usage: 07_epoll <FILE    or    COMMAND | 07_epoll    or    07_epoll, then type
 *
 * With expected/07_input.txt as input, prints the text in expected/07_epoll.txt. Prints each tick
 * of the timer to standard error, between the lines.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LINE = 1000, CHUNK = 65536, QUEUE_CAPACITY = 256, TICK_MS = 250 };

static void fail(const char *what, const char *why) {
  fprintf(stderr, "07_epoll: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* ---- The protocol --------------------------------------------------------------------------- */

#define INPUT "Input"

enum {
  LINE_READ,   /* The payload is the line, without its newline. */
  LINE_CUT,    /* The payload is the beginning of the line. */
  INPUT_ENDED, /* No payload. */
  INPUT_FAILED /* The payload is an int: the value of errno. */
};

/* The `events` of multicast_add_options. */
#define LINE_EVENTS (UINT64_C(1) << LINE_READ | UINT64_C(1) << LINE_CUT)
#define END_EVENTS (UINT64_C(1) << INPUT_ENDED | UINT64_C(1) << INPUT_FAILED)

/* ---- The reading thread --------------------------------------------------------------------- */

struct reader {
  multicast_broadcaster broadcaster;
  /* The part of the line that has been read. A line of more than MOST_LINE bytes is truncated. */
  char line[MOST_LINE + 1];
  size_t length;
  char chunk[CHUNK];
};

static void reader_notify(const struct reader *reader, uint32_t event, const void *payload,
                          size_t size) {
  int64_t told = multicast_broadcaster_notify(reader->broadcaster, INPUT, event, payload, size);
  if (told < 0) fail("notify", multicast_status_message(told));
}

static void reader_end_line(struct reader *reader) {
  if (reader->length <= MOST_LINE) {
    reader_notify(reader, LINE_READ, reader->line, reader->length);
  } else {
    /* Cut the line at the beginning of a UTF-8 character, which has at most three more bytes. */
    size_t shown = MOST_LINE;
    while (shown > MOST_LINE - 3 && ((unsigned char)reader->line[shown] & 0xC0) == 0x80) shown--;
    reader_notify(reader, LINE_CUT, reader->line, shown);
  }
  reader->length = 0;
}

static void reader_keep(struct reader *reader, const char *bytes, size_t count) {
  const size_t room = sizeof reader->line - reader->length;
  if (count > room) count = room;
  memcpy(reader->line + reader->length, bytes, count);
  reader->length += count;
}

static void reader_split(struct reader *reader, const char *bytes, const char *end) {
  const char *newline;
  while ((newline = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL) {
    reader_keep(reader, bytes, (size_t)(newline - bytes));
    reader_end_line(reader);
    bytes = newline + 1;
  }
  reader_keep(reader, bytes, (size_t)(end - bytes));
}

static void *read_input(void *argument) {
  struct reader *reader = argument;
  for (;;) {
    ssize_t count = read(STDIN_FILENO, reader->chunk, sizeof reader->chunk);
    if (count > 0) {
      reader_split(reader, reader->chunk, reader->chunk + count);
    } else if (count == 0) {
      /* The last line may lack a newline. */
      if (reader->length > 0) reader_end_line(reader);
      reader_notify(reader, INPUT_ENDED, NULL, 0);
      return NULL;
    } else if (errno != EINTR) {
      const int error = errno;
      reader_notify(reader, INPUT_FAILED, &error, sizeof error);
      return NULL;
    }
  }
}

/* ---- The observers, called on the loop ------------------------------------------------------ */

struct printer {
  uint64_t number;
};

static void printer_line(void *context, uint32_t event, const void *payload, size_t size) {
  struct printer *printer = context;
  printer->number += 1;
  printf("%" PRIu64 ": ", printer->number);
  fwrite(payload, 1, size, stdout); /* Unlike printf(), it does not stop at a NUL. */
  puts(event == LINE_CUT ? "..." : "");
}

struct counter {
  uint64_t lines;
  uint64_t bytes;
  uint64_t cut;
};

static void counter_line(void *context, uint32_t event, const void *payload, size_t size) {
  struct counter *counter = context;
  (void)payload;
  counter->lines += 1;
  counter->bytes += size;
  if (event == LINE_CUT) counter->cut += 1;
}

struct loop {
  multicast_queue queue;
  int epoll;
  int timer;
  uint64_t ticks;
  bool is_over;
  int error; /* The errno of the input, or 0. */
};

static void loop_end(void *context, uint32_t event, const void *payload, size_t size) {
  struct loop *loop = context;
  (void)size;
  if (event == INPUT_FAILED) loop->error = *(const int *)payload;
  loop->is_over = true;
}

/* ---- The loop ------------------------------------------------------------------------------- */

static void loop_watch(const struct loop *loop, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
  if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    fail("epoll_ctl", strerror(errno));
  }
}

static void loop_begin(struct loop *loop) {
  loop->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (loop->epoll < 0) fail("epoll_create1", strerror(errno));

  const int descriptor = multicast_queue_fd(loop->queue);
  if (descriptor < 0) fail("queue_fd", strerror(errno));
  loop_watch(loop, descriptor);

  loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (loop->timer < 0) fail("timerfd_create", strerror(errno));
  const struct timespec period = {0, TICK_MS * 1000000L};
  const struct itimerspec ticking = {period, period};
  if (timerfd_settime(loop->timer, 0, &ticking, NULL) != 0) {
    fail("timerfd_settime", strerror(errno));
  }
  loop_watch(loop, loop->timer);
}

static void loop_tick(struct loop *loop) {
  uint64_t expired;
  if (read(loop->timer, &expired, sizeof expired) == (ssize_t)sizeof expired) {
    loop->ticks += expired;
    fprintf(stderr, "07_epoll: tick %" PRIu64 "\n", loop->ticks);
  } else if (errno != EAGAIN && errno != EINTR) {
    fail("timer", strerror(errno));
  }
}

static void loop_run(struct loop *loop) {
  while (!loop->is_over) {
    struct epoll_event ready[2];
    int count = epoll_wait(loop->epoll, ready, 2, -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait", strerror(errno));
    for (int i = 0; i < count; i++) {
      if (ready[i].data.fd == loop->timer) {
        loop_tick(loop);
      } else {
        /* Make only the calls that are waiting now, so that the timer is handled in between. */
        int64_t made = multicast_queue_run(loop->queue, 0);
        if (made < 0) fail("queue_run", multicast_status_message(made));
      }
    }
  }
}

/* Must be called before the queue is destroyed, because that closes the queue's descriptor. */
static void loop_stop_watching(const struct loop *loop) {
  close(loop->epoll);
  close(loop->timer);
}

/* ---- Main program --------------------------------------------------------------------------- */

static multicast_queue create_queue(void) {
  multicast_queue_options options = multicast_queue_options_default();
  options.capacity = QUEUE_CAPACITY;
  options.overflow = MULTICAST_OVERFLOW_BLOCK;
  multicast_queue queue = multicast_queue_create(&options);
  if (queue.id == 0) must("queue_create", multicast_create_error());
  return queue;
}

/* Observers that register without a queue are called on the loop. */
static multicast_broadcaster create_broadcaster(multicast_queue queue) {
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  options.queue = queue;
  multicast_broadcaster broadcaster = multicast_broadcaster_create(&options);
  if (broadcaster.id == 0) must("broadcaster_create", multicast_create_error());
  return broadcaster;
}

static void observe(multicast_broadcaster broadcaster, multicast_function function, void *context,
                    uint64_t events) {
  multicast_delegate observer = {function, context};
  multicast_add_options options = multicast_add_options_default();
  options.events = events;
  must("register", multicast_broadcaster_register(broadcaster, INPUT, observer, &options, NULL));
}

static void print_report(const struct loop *loop, const struct counter *counter) {
  multicast_queue_stats stats = multicast_queue_stats_default();
  must("queue_get_stats", multicast_queue_get_stats(loop->queue, &stats));
  if (stats.refused != 0) fail("queue", "it refused calls: there was no memory for their lines");
  printf("lines: %" PRIu64 "; bytes: %" PRIu64 "; cut: %" PRIu64 "\n", counter->lines,
         counter->bytes, counter->cut);
}

static void finish_output(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
}

int main(int argc, char **argv) {
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    puts("Usage: 07_epoll <FILE    or    COMMAND | 07_epoll    or    07_epoll, then type\n\n"
         "Reads lines from standard input on a thread of its own, until it ends, and prints them\n"
         "with their numbers on a loop of epoll.");
    finish_output();
    return EXIT_SUCCESS;
  }
  if (argc > 1) fail(argv[1], "one argument too many; see --help");
  /* If standard input were closed, the next descriptor to be opened would receive its number, 0. */
  if (fcntl(STDIN_FILENO, F_GETFD) < 0) fail("standard input", strerror(errno));
  /* Write each line immediately, even to a pipe. */
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);

  struct printer printer = {0};
  struct counter counter = {0, 0, 0};
  struct loop loop = {.queue = create_queue()};
  static struct reader reader;
  reader.broadcaster = create_broadcaster(loop.queue);
  observe(reader.broadcaster, printer_line, &printer, LINE_EVENTS);
  observe(reader.broadcaster, counter_line, &counter, LINE_EVENTS);
  observe(reader.broadcaster, loop_end, &loop, END_EVENTS);

  loop_begin(&loop);
  pthread_t reading;
  int error = pthread_create(&reading, NULL, read_input, &reader);
  if (error != 0) fail("pthread_create", strerror(error));
  loop_run(&loop);
  error = pthread_join(reading, NULL);
  if (error != 0) fail("pthread_join", strerror(error));
  loop_stop_watching(&loop);
  if (loop.error != 0) fail("standard input", strerror(loop.error));

  print_report(&loop, &counter);
  must("broadcaster_destroy", multicast_broadcaster_destroy(reader.broadcaster));
  must("queue_destroy", multicast_queue_destroy(loop.queue));
  finish_output();
  return EXIT_SUCCESS;
}
