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
  return multicast_local_ask(&p->transport, name, 7, text, text == NULL ? 0 : strlen(text),
                             timeout_ns, note_told, t);
}

void respond(void *context, const multicast_local_question *question, uint32_t event,
             const void *payload, size_t size) {
  responder *r = context;
  char text[64];
  CHECK((payload == NULL) == (size == 0));
  snprintf(text, sizeof text, "%s:%u:%.*s", r->name, event, (int)size,
           size == 0 ? "" : (const char *)payload);
  ADD(r->calls, 1);
  CHECK_OK(multicast_local_reply(question, text, strlen(text)));
}

void note_release_of_responder(void *context) {
  responder *r = context;
  ADD(r->releases, 1);
}

void keep_question(void *context, const multicast_local_question *question, uint32_t event,
                   const void *payload, size_t size) {
  multicast_local_question *kept = context;
  kept->peer = question->peer;
  kept->number = question->number;
  STORE(kept->transport, question->transport);
}

void peer_answer(peer *p, const char *name, responder *r) {
  CHECK_OK(multicast_local_answer(&p->transport, name, respond, r, note_release_of_responder));
  peer_flush(p);
}
