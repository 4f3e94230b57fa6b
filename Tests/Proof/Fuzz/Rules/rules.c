/* The fuzz target `rules` performs the operations of the input and compares each of them with the
 * model. */

#include <stdlib.h>

#include "callbacks.h"
#include "history.h"
#include "memory.h"
#include "operations.h"
#include "warm_up.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t input_size;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  memory_install();
  warm_up();
  model_begin();
  begin_default_broadcaster();
  end_default_broadcaster();
  return 0;
}

/* Destroys everything that the input has left behind, by means of operations that are also compared
 * with the model. */
static void clean_up(void) {
  record r = {0};
  memory_recover();
  for (int i = 0; i < model.queue_count; ++i) {
    EXPECT(!model.queues[i].is_alive || model.queues[i].stats.pending <= 1024, "too many calls");
    while (model.queues[i].is_alive) perform_destroy_queue(&r);
  }
  for (int i = 0; i < model.lifetime_count; ++i)
    if (model.lifetimes[i].is_alive) perform_end_lifetime(&r);
  for (int i = 1; i < model.broadcaster_count; ++i)
    if (model.broadcasters[i].is_alive) {
      r.a = 1; /* not 0, which is the default broadcaster */
      perform_destroy_broadcaster(&r);
    }
  r.a = 0;
  for (int i = 0; i < model.multicast_count; ++i)
    if (model.multicasts[i].is_alive) perform_destroy(&r);
  verify();
}

static void expect_nothing_is_left(void) {
  for (int i = 0; i < model.registration_count; ++i) {
    const registration *r = &model.registrations[i];
    EXPECT(!r->is_live && r->in_use == 0, "a registration is left");
    EXPECT(r->release == NONE || r->has_been_released, "a release has not run");
  }
  for (int i = 0; i < model.cargo_count; ++i) {
    const model_cargo *c = &model.cargos[i];
    EXPECT_EQ(c->references, 0);
    EXPECT(!c->has_payload || c->is_released, "a payload was not released");
  }
  EXPECT_EQ(model.due_count, 0);
  EXPECT_EQ(multicast_token_current().id, 0);
}

static void play(void) {
  record r;
  history_clear();
  model_begin();
  begin_default_broadcaster();
  records_begin(input, input_size);
  while (records_next(&r)) {
    perform(&r);
    EXPECT_EQ(model.depth, 0);
    /* The effects of these two operations last until the end of the next operation. */
    if (operation_of(&r) != DO_fail_memory) memory_recover();
    if (operation_of(&r) != DO_recurse) model.recursions = 0;
  }
  clean_up();
  expect_nothing_is_left();
  end_default_broadcaster();
  model_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t blocks = memory_blocks();
  input = data;
  input_size = size;
  play();
  memory_expect_no_leak(play, blocks);
  return 0;
}
