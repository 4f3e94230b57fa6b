/* SPDX-License-Identifier: MIT
 *
 * 01_dispatch: a protocol with two methods, and delegates that are added and removed.
 *
 * A dispatch centre notifies the emergency services through a multicast, without knowing them. The
 * event number selects the method of the protocol, and the payload is its argument. Before the
 * second call, the fire station closes and is removed. After multicast_remove_every() has returned
 * MULTICAST_OK, no thread calls the station any more, so its memory can be freed.
 *
 * Prints:
 *
 *     Police were notified about a fire at Ray's house!
 *     Firefighters were notified about a fire at Ray's house!
 *
 *     Police were notified about a car crash at Ray's garage!
 */

#include <multicast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The protocol: two methods, each with a place as its argument --------------------------- */

enum { NOTIFY_FIRE, NOTIFY_CAR_CRASH };

/* ---- The delegates: stations that follow the protocol --------------------------------------- */

struct station {
  const char *crew;
};

static void station_respond(void *context, uint32_t event, const void *payload, size_t size) {
  const struct station *station = context;
  const char *what;
  switch (event) {
    case NOTIFY_FIRE: what = "a fire"; break;
    case NOTIFY_CAR_CRASH: what = "a car crash"; break;
    default: return; /* A method of a newer protocol. */
  }
  printf("%s were notified about %s at %.*s!\n", station->crew, what, (int)size,
         (const char *)payload);
}

static struct station *station_open(const char *crew) {
  struct station *station = malloc(sizeof *station);
  if (station == NULL) {
    fputs("01_dispatch: out of memory\n", stderr);
    exit(EXIT_FAILURE);
  }
  station->crew = crew;
  return station;
}

/* ---- The delegating object: the dispatch centre --------------------------------------------- */

struct dispatch {
  multicast responders;
};

static void dispatch_notify(const struct dispatch *dispatch, uint32_t method, const char *place) {
  int64_t called = multicast_invoke(dispatch->responders, method, place, strlen(place));
  if (called < 0) {
    const char *why = multicast_status_message(called);
    fprintf(stderr, "01_dispatch: invoke: %s\n", why);
    exit(EXIT_FAILURE);
  }
}

/* ---- Main program --------------------------------------------------------------------------- */

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) {
    fprintf(stderr, "01_dispatch: %s: %s\n", what, multicast_status_message(status));
    exit(EXIT_FAILURE);
  }
}

int main(void) {
  struct dispatch dispatch = {multicast_create()};
  if (dispatch.responders.id == 0) must("create", multicast_create_error());
  multicast_delegate police = {station_respond, station_open("Police")};
  multicast_delegate firefighters = {station_respond, station_open("Firefighters")};
  must("add", multicast_add(dispatch.responders, police, NULL, NULL));
  must("add", multicast_add(dispatch.responders, firefighters, NULL, NULL));

  dispatch_notify(&dispatch, NOTIFY_FIRE, "Ray's house");
  puts("");

  must("remove", multicast_remove_every(dispatch.responders, firefighters));
  free(firefighters.context);

  dispatch_notify(&dispatch, NOTIFY_CAR_CRASH, "Ray's garage");

  must("destroy", multicast_destroy(dispatch.responders));
  free(police.context);
  if (fflush(stdout) != 0) {
    perror("01_dispatch: standard output");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
