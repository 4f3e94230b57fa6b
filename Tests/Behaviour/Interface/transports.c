#include "transports.h"

static void note(wire *w, char what, const char *name) {
  CHECK_EQ(w->releases, 0);
  CHECK(w->length + strlen(name) + 3 < sizeof w->told);
  /* A prefix is passed as an empty name, followed by the prefix itself. */
  w->length += (size_t)sprintf(w->told + w->length, "%s%c%s%s", w->length == 0 ? "" : " ", what,
                               *name == 0 ? name + 1 : name, *name == 0 ? "*" : "");
  w->thread = pthread_self();
  if (w->inside != NULL) w->inside(w);
}

static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  wire *w = context;
  w->event = event;
  w->payload = payload;
  w->size = size;
  if (size != 0) memcpy(w->bytes, payload, size < sizeof w->bytes ? size : sizeof w->bytes);
  note(w, '!', name);
  return w->status;
}

static multicast_status subscribe(void *context, const char *name) {
  wire *w = context;
  note(w, '+', name);
  return w->status;
}

static void unsubscribe(void *context, const char *name) { note(context, '-', name); }

static void release_wire(void *context) { ADD(((wire *)context)->releases, 1); }

multicast_transport transport_of(wire *w) {
  return TRANSPORT_WITH(.flags = MULTICAST_TRANSPORT_PREFIXES, .context = w, .publish = publish,
                        .subscribe = subscribe, .unsubscribe = unsubscribe,
                        .release = release_wire);
}

void attach(multicast_broadcaster b, wire *w) {
  multicast_transport transport = transport_of(w);
  memset(w, 0, sizeof *w);
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
}

void detach(multicast_broadcaster b) { CHECK_OK(multicast_broadcaster_attach(b, NULL)); }

void expect_notified(wire *w, const char *told) {
  CHECK_TEXT(w->told, told);
  w->told[0] = 0;
  w->length = 0;
}
