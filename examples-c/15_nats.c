/* SPDX-License-Identifier: MIT
 *
 * 15_nats: chats over a NATS server, with itself or with any other NATS client.
 *
 *   15_nats URL listen      prints the messages; ends when somebody says "bye"
 *   15_nats URL say TEXT    sends the text
 *
 * Event 1 of the name "chat" has the subject multicast.chat.1, and the message is the unchanged
 * payload. Therefore, this program receives messages from `nats pub multicast.chat.1 hello`, and
 * `nats sub 'multicast.>'` receives messages from this program.
 *
 *     gcc 15_nats.c -lmulticast-nats -lmulticast -o 15_nats
 *     ./15_nats nats://127.0.0.1:4222 listen
 *
 * The listener prints the text in expected/15_nats.txt if the texts "hello", "how are you?" and
 * "bye" are sent.
 */

#include <multicast_nats.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char chat[] = "chat";
enum { SAID = 1 };

static const uint64_t ten_seconds = 10000000000u;

static void must(const char *what, int64_t status) {
  if (status >= 0 && status != MULTICAST_PENDING) return;
  fprintf(stderr, "15_nats: %s: %s\n", what, multicast_status_message(status));
  exit(EXIT_FAILURE);
}

/* Called on the transport's thread. The transport reconnects until it is detached. */
static void connection_changed(void *context, multicast_nats_state state, int32_t code,
                               const char *reason) {
  (void)context, (void)code;
  if (state != MULTICAST_NATS_CONNECTED) fprintf(stderr, "15_nats: %s\n", reason);
}

/* Called on the main thread, which runs the queue. */
static void heard(void *context, uint32_t event, const void *payload, size_t size) {
  bool *is_over = context;
  if (event != SAID) return;
  printf("heard: %.*s\n", (int)size, (const char *)payload);
  *is_over = size == 3 && memcmp(payload, "bye", 3) == 0;
}

int main(int argc, char **argv) {
  bool listens = argc == 3 && strcmp(argv[2], "listen") == 0, is_over = false;
  if (!listens && (argc != 4 || strcmp(argv[2], "say") != 0)) {
    fputs("Usage: 15_nats URL listen, or 15_nats URL say TEXT\n", stderr);
    return EXIT_FAILURE;
  }
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  multicast_queue loop = multicast_queue_create(NULL);
  if (broadcaster.id == 0 || loop.id == 0) must("create", multicast_create_error());

  multicast_nats_options options = multicast_nats_options_default();
  multicast_transport transport;
  options.broadcaster = broadcaster;
  options.servers = argv[1];
  options.queue = loop;
  options.changed = connection_changed;
  must("connect", multicast_nats_connect(&options, &transport));
  must("attach", multicast_broadcaster_attach(broadcaster, &transport));

  if (listens) {
    multicast_delegate listener = {heard, &is_over};
    must("register", multicast_broadcaster_register(broadcaster, chat, listener, NULL, NULL));
  } else {
    must("notify", multicast_broadcaster_notify(broadcaster, chat, SAID, argv[3], strlen(argv[3])));
  }
  /* Wait until the server has received the listener's subscription or the sender's text. */
  must("the server", multicast_nats_flush(&transport, ten_seconds));
  if (listens) fputs("15_nats: listening\n", stderr);
  while (listens && !is_over) {
    if (multicast_queue_wait(loop, MULTICAST_FOREVER) > 0) multicast_queue_run(loop, 0);
  }

  must("destroy", multicast_broadcaster_destroy(broadcaster));
  must("destroy", multicast_queue_destroy(loop));
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
