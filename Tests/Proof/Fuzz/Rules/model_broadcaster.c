#include "model.h"

void model_follow_ending(const frame *f) {
  if (f->ending == NONE) return;
  for (int i = 0; i < NAMES; ++i) {
    int target = model.broadcasters[f->ending].targets[i];
    if (target == NONE || !model.multicasts[target].is_alive) continue;
    if (!multicast_is_valid(model.multicasts[target].handle)) model_destroy(target);
  }
}
