/* The fuzz target `arguments`. Whatever arguments it receives, the library must not crash, and must
 * return a result that the header allows. */

#include "calls.h"
#include "expect.h"
#include "history.h"
#include "memory.h"
#include "payloads.h"
#include "values.h"
#include "warm_up.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t input_size;

static void ignore(void *context, uint32_t event, const void *payload, size_t size) {}

/* The default broadcaster outlives each input, so every input must find it in the same state. In
 * that state it has no observers and no transport, but it has a multicast for each name, and each
 * of these multicasts has already reported to a transport whether it has observers. */
static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  return MULTICAST_OK;
}

static void empty_default_broadcaster(void) {
  static const char *const names[] = {"a", "b", "ab"};
  multicast_broadcaster b = multicast_broadcaster_default();
  multicast_delegate d = {ignore, NULL};
  multicast_transport t = multicast_transport_default();
  t.publish = publish;
  EXPECT_EQ(multicast_broadcaster_attach(b, &t), MULTICAST_OK);
  for (int i = 0; i < 3; ++i) {
    EXPECT_COUNT(multicast_broadcaster_unregister_all(b, names[i]),
                 MULTICAST_ERROR_INVALID_HANDLE);
    EXPECT_EQ(multicast_broadcaster_register(b, names[i], d, NULL, NULL), MULTICAST_OK);
    EXPECT_EQ(multicast_broadcaster_unregister(b, names[i], d), MULTICAST_OK);
  }
  EXPECT_EQ(multicast_broadcaster_attach(b, NULL), MULTICAST_OK);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  memory_install();
  warm_up();
  empty_default_broadcaster();
  return 0;
}

static void play(void) {
  history_clear();
  values_begin(input, input_size);
  payloads_begin();
  begin_calls();
  while (values_are_left()) {
    call_something();
    if (any_byte() & 1) memory_recover();
  }
  memory_recover();
  destroy_everything();
  empty_default_broadcaster();
  EXPECT_EQ(multicast_token_current().id, 0);
  payloads_end();
  values_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t blocks = memory_blocks();
  input = data;
  input_size = size;
  play();
  memory_expect_no_leak(play, blocks);
  return 0;
}
