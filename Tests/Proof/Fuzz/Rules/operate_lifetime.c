#include "history.h"
#include "memory.h"
#include "operations.h"

void perform_create_lifetime(const record *r) {
  int64_t failures = memory_failures();
  int i;
  NOTE("multicast_lifetime_create()");
  multicast_lifetime l = multicast_lifetime_create();
  if (l.id == 0) {
    EXPECT(memory_failures() > failures, "a failed create without a failed allocation");
    return;
  }
  for (i = 0; i < model.lifetime_count; ++i)
    EXPECT(model.lifetimes[i].handle.id != l.id, "two lifetimes with the same handle");
  NOTE("= l%lld", i);
  model.lifetimes[i].handle = l;
  model.lifetimes[i].is_alive = true;
  ++model.lifetime_count;
}

void perform_end_lifetime(const record *r) {
  limit within = choose_limit(r->b);
  BEGIN_CHANGE(multicast_lifetime l, choose_lifetime(r->a), "multicast_lifetime_end(l%lld)",
               c.index);
  if (c.is_alive) {
    model.lifetimes[c.index].is_alive = false;
    for (int i = 0; i < model.registration_count; ++i)
      if (model.registrations[i].lifetime == c.index && model.registrations[i].is_live)
        model_remove(i);
  }
  multicast_status status = within.is_limited ? multicast_lifetime_end_within(l, within.timeout_ns)
                             : multicast_lifetime_end(l);
  if (c.is_alive) {
    allow(&allowed, MULTICAST_OK);
    if (model.releases_inside > 0) allow(&allowed, MULTICAST_PENDING);
    for (int i = 0; i < model.registration_count; ++i) {
      const registration *x = &model.registrations[i];
      if (x->lifetime != c.index) continue;
      if (x->in_use > 0) allow(&allowed, MULTICAST_PENDING);
      /* Registrations that were removed earlier can also cause MULTICAST_PENDING. */
      if (x->running > 0 || (x->release != NONE && x->in_use == 0 && !x->has_been_released))
        allowed.values[0] = MULTICAST_PENDING;
    }
  }
  finish(status, &allowed);
}
