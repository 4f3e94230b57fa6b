#include "memory.h"
#include "model.h"

static void add_one(addition *a, int i) {
  registration r = a->like;
  int equal;
  r.target = a->target;
  r.function = a->functions[i];
  r.context = a->contexts[i];
  r.is_live = true;
  if (r.flags & MULTICAST_UNIQUE)
    while ((equal = model_first_equal(r.target, r.function, r.context)) != NONE)
      model_remove(equal);
  model.registrations[model.registration_count++] = r;
}

static void take_token(addition *a, int i) {
  registration *r = &model.registrations[a->first + i];
  if (a->tokens == NULL) return;
  r->token = a->tokens[i];
  EXPECT(r->token.id != 0, "a registration without a token");
  for (int j = 0; j < model.registration_count; ++j)
    EXPECT(j == a->first + i || model.registrations[j].token.id != r->token.id,
           "two registrations with the same token");
}

/* Called if the library has created a multicast for the name, which previously had none. */
static void find_target(addition *a) {
  model_broadcaster *b = &model.broadcasters[a->broadcaster];
  multicast found = multicast_broadcaster_multicast(b->handle, a->name_text);
  a->target = model_new_multicast(found, a->broadcaster);
  b->targets[a->name] = a->target;
}

void model_finish_adding(addition *a, bool has_failed) {
  int i;
  a->is_decided = true;
  a->has_failed = has_failed;
  if (has_failed) {
    if (a->like.release != NONE)
      for (i = 0; i < a->count; ++i) model_release_is_due(a->contexts[i], a->like.release, NONE);
    return;
  }
  if (a->target == NONE) find_target(a);
  a->first = model.registration_count;
  for (i = 0; i < a->count; ++i) add_one(a, i);
  for (i = 0; i < a->count; ++i) take_token(a, i);
}

/* A failed attempt to register changes nothing, with one exception. If the name had no multicast,
 * or if a caller had destroyed it, the attempt may have created a multicast before memory ran out.
 * The model then has to learn that multicast's handle. */
static void look_up_again(const addition *a) {
  model_broadcaster *b = &model.broadcasters[a->broadcaster];
  int *target = &b->targets[a->name];
  int left = memory_successes_left();
  if (!b->is_alive) return;
  memory_recover(); /* looking it up may also need memory */
  multicast found = multicast_broadcaster_multicast(b->handle, a->name_text);
  memory_fail_after(left);
  if (*target != NONE && found.id == model.multicasts[*target].handle.id) return;
  EXPECT(*target == NONE || memory_failures() > model_top()->failures,
         "a failed register has replaced the multicast of the name");
  EXPECT(found.id != 0, "a name without a multicast");
  *target = model_new_multicast(found, a->broadcaster);
}

void model_follow_adding(frame *f) {
  addition *a = f->adding;
  if (a == NULL) return;
  if (!a->is_decided) model_finish_adding(a, memory_failures() > f->failures);
  if (a->has_failed && a->name_text != NULL) look_up_again(a);
}
