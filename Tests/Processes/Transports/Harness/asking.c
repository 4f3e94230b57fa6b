#include "asking.h"

bool note_told(void *context, multicast_status status, int32_t pid, const char *peer,
               const void *payload, size_t size) {
  told *t = context;
  CHECK(t->count < TOLD_MAX);
  CHECK((payload == NULL) == (size == 0));
  CHECK(status == MULTICAST_OK || size == 0);
  t->each[t->count].status = status;
  t->each[t->count].pid = pid;
  t->each[t->count].size = size;
  t->each[t->count].at = time_now();
  snprintf(t->each[t->count].peer, sizeof t->each[0].peer, "%s", peer);
  snprintf(t->each[t->count].payload, sizeof t->each[0].payload, "%.*s", (int)(size % 1000),
           size == 0 ? "" : (const char *)payload);
  ++t->count;
  t->answers += status == MULTICAST_OK;
  return t->enough == 0 || t->answers < t->enough;
}

multicast_status ask(const peer *p, told *t, const char *name, const char *text,
                     uint64_t timeout_ns) {
  const int enough = t->enough;
  memset(t, 0, sizeof *t);
  t->enough = enough;
  return transport_ask(&p->transport, name, 7, text, text == NULL ? 0 : strlen(text),
                             timeout_ns, note_told, t);
}

void respond(void *context, const transport_question *question, uint32_t event,
             const void *payload, size_t size) {
  responder *r = context;
  char text[64];
  CHECK((payload == NULL) == (size == 0));
  snprintf(text, sizeof text, "%s:%u:%.*s", r->name, event, (int)size,
           size == 0 ? "" : (const char *)payload);
  ADD(r->calls, 1);
  CHECK_OK(transport_reply(question, text, strlen(text)));
}

void note_release_of_responder(void *context) {
  responder *r = context;
  ADD(r->releases, 1);
}

void keep_question(void *context, const transport_question *question, uint32_t event,
                   const void *payload, size_t size) {
  transport_question *kept = context;
  kept->peer = question->peer;
  kept->number = question->number;
  STORE(kept->transport, question->transport);
}

void peer_answer(peer *p, const char *name, responder *r) {
  CHECK_OK(transport_answer(&p->transport, name, respond, r, note_release_of_responder));
  peer_flush(p);
}

#ifdef TRANSPORT_HAS_PEERS
#define NAMED(text) &OPTIONS(.name = (text))
#else
#define NAMED(text) NULL
void peer_meet(peer *p, int others) { peer_flush(p); } /* only the broker must know the names */
#endif

void start_peers(broker *b, peer *here, peer *there, peer *third) {
  broker_start(b, NULL);
  peer_connect_with(here, b->port, NAMED("here"));
  peer_connect_with(there, b->port, NAMED("there"));
  if (third != NULL) peer_connect_with(third, b->port, NAMED("third"));
  peer_meet(here, third == NULL ? 1 : 2);
}

/* ---- On other threads ------------------------------------------------------------------------ */

THREAD(reply_later, late_reply *r) {
  EVENTUALLY(LOAD(r->question.transport) != 0);
  pause_ms(20);
  STORE(r->result, transport_reply(&r->question, r->text, strlen(r->text)));
}

pthread_t start_reply(late_reply *r) { return start_thread(reply_later, r); }

THREAD(ask_until_released, asking *a) {
  a->result = ask(a->p, &a->t, "q", "", MULTICAST_FOREVER);
}

pthread_t start_asking(asking *a) { return start_thread(ask_until_released, a); }
