/* SPDX-License-Identifier: MIT
 *
 * 06_broadcaster: a thread notifies screens by name, and the screens are called on the main thread.
 *
 * A screen that shows the title registers under the name "UpdateTitle". A typing thread notifies
 * that name's observers of each new title, without knowing the screens. The broadcaster uses the
 * queue of the main loop, so a title waits there until the loop runs the queue. The screens are
 * called only on the main thread, as GUI toolkits require, and need no lock.
 *
 * At one point a screen is closed while a title is waiting for it. Unregistering the screen cancels
 * the waiting call. After multicast_broadcaster_unregister() has returned MULTICAST_OK, nothing
 * calls the screen any more, so its memory is freed in the next statement.
 *
 * Prints the text in expected/06_broadcaster.txt.
 */

#define _POSIX_C_SOURCE 200809L

#include <multicast.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "06_broadcaster: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* ---- The protocols: the only thing that both sides know ------------------------------------- */

/* The name under which new titles are sent. The payload is the title. */
#define UPDATE_TITLE "UpdateTitle"

/* Commands to the program. */
#define COMMAND "Command"
enum { COMMAND_BACK, COMMAND_QUIT };

/* ---- The screens ---------------------------------------------------------------------------- */

struct screen {
  const char *name;
  char title[32];
};

static pthread_t main_thread;

static void screen_update_title(void *context, uint32_t event, const void *payload, size_t size) {
  struct screen *screen = context;
  (void)event;
  snprintf(screen->title, sizeof screen->title, "%.*s", (int)size, (const char *)payload);
  printf("  %s shows \"%s\", %s the main thread\n", screen->name, screen->title,
         pthread_equal(pthread_self(), main_thread) ? "on" : "NOT on");
}

static struct screen *screen_open(multicast_broadcaster broadcaster, const char *name) {
  struct screen *screen = calloc(1, sizeof *screen);
  if (screen == NULL) fail("screen", strerror(errno));
  screen->name = name;
  multicast_delegate observer = {screen_update_title, screen};
  must("register", multicast_broadcaster_register(broadcaster, UPDATE_TITLE, observer, NULL, NULL));
  printf("open %s\n", name);
  return screen;
}

static void screen_close(multicast_broadcaster broadcaster, struct screen *screen) {
  multicast_delegate observer = {screen_update_title, screen};
  printf("close %s, which shows \"%s\"\n", screen->name, screen->title);
  must("unregister", multicast_broadcaster_unregister(broadcaster, UPDATE_TITLE, observer));
  free(screen);
}

/* ---- The program ---------------------------------------------------------------------------- */

struct program {
  multicast_queue queue;
  multicast_broadcaster broadcaster;
  struct screen *screens[3];
  int open; /* The number of open screens. */
  bool is_over;
  sem_t letter_typed;
};

static void program_obey(void *context, uint32_t event, const void *payload, size_t size) {
  struct program *program = context;
  (void)payload;
  (void)size;
  switch (event) {
    case COMMAND_BACK:
      puts("back");
      /* Wait until the second title has been queued, so that it is waiting when the screen is
       * closed. */
      while (sem_wait(&program->letter_typed) != 0) {
        if (errno != EINTR) fail("sem_wait", strerror(errno));
      }
      screen_close(program->broadcaster, program->screens[--program->open]);
      break;
    case COMMAND_QUIT:
      puts("quit");
      program->is_over = true;
      break;
    default: break;
  }
}

static void program_run(struct program *program) {
  while (!program->is_over) {
    int64_t waiting = multicast_queue_wait(program->queue, MULTICAST_FOREVER);
    if (waiting < 0) fail("queue_wait", multicast_status_message(waiting));
    int64_t made = multicast_queue_run(program->queue, 0);
    if (made < 0) fail("queue_run", multicast_status_message(made));
  }
}

/* ---- The typing thread ---------------------------------------------------------------------- */

/* Knows the broadcaster and the protocols, but not the observers. */
struct typist {
  multicast_broadcaster broadcaster;
  sem_t *letter_typed;
  /* Results, printed at the end. */
  int64_t told_of_draft;
  int64_t told_of_letter;
};

static int64_t notify(multicast_broadcaster broadcaster, const char *name, uint32_t event,
                      const char *text) {
  int64_t told = multicast_broadcaster_notify(broadcaster, name, event, text, strlen(text));
  if (told < 0) fail("notify", multicast_status_message(told));
  return told;
}

static void *type(void *argument) {
  struct typist *typist = argument;
  typist->told_of_draft = notify(typist->broadcaster, UPDATE_TITLE, 0, "Draft");
  notify(typist->broadcaster, COMMAND, COMMAND_BACK, "");
  typist->told_of_letter = notify(typist->broadcaster, UPDATE_TITLE, 0, "Letter to Ada");
  sem_post(typist->letter_typed);
  notify(typist->broadcaster, COMMAND, COMMAND_QUIT, "");
  return NULL;
}

/* ---- Main program --------------------------------------------------------------------------- */

static void print_report(const struct program *program, const struct typist *typist) {
  multicast_queue_stats stats = multicast_queue_stats_default();
  must("queue_get_stats", multicast_queue_get_stats(program->queue, &stats));
  printf("told of \"Draft\": %" PRId64 "; of \"Letter to Ada\": %" PRId64 "\n",
         typist->told_of_draft, typist->told_of_letter);
  printf("calls queued: %" PRIu64 "; made: %" PRIu64 "; cancelled: %" PRIu64 "\n", stats.queued,
         stats.delivered, stats.cancelled);
}

int main(void) {
  struct program program = {.open = 0};
  main_thread = pthread_self();
  if (sem_init(&program.letter_typed, 0, 0) != 0) fail("sem_init", strerror(errno));

  program.queue = multicast_queue_create(NULL);
  if (program.queue.id == 0) must("queue_create", multicast_create_error());
  multicast_broadcaster_options options = multicast_broadcaster_options_default();
  options.queue = program.queue;
  program.broadcaster = multicast_broadcaster_create(&options);
  if (program.broadcaster.id == 0) must("broadcaster_create", multicast_create_error());

  multicast_delegate obedient = {program_obey, &program};
  must("register",
       multicast_broadcaster_register(program.broadcaster, COMMAND, obedient, NULL, NULL));
  static const char *const names[] = {"the list", "the letter", "the envelope"};
  for (; program.open < 3; program.open++) {
    program.screens[program.open] = screen_open(program.broadcaster, names[program.open]);
  }

  struct typist typist = {program.broadcaster, &program.letter_typed, 0, 0};
  pthread_t typing;
  int error = pthread_create(&typing, NULL, type, &typist);
  if (error != 0) fail("pthread_create", strerror(error));
  program_run(&program);
  error = pthread_join(typing, NULL);
  if (error != 0) fail("pthread_join", strerror(error));

  print_report(&program, &typist);
  while (program.open > 0) screen_close(program.broadcaster, program.screens[--program.open]);
  must("broadcaster_destroy", multicast_broadcaster_destroy(program.broadcaster));
  must("queue_destroy", multicast_queue_destroy(program.queue));
  sem_destroy(&program.letter_typed);
  if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output", strerror(errno));
  return EXIT_SUCCESS;
}
