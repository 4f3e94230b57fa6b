#include "warm_up.h"

#include "expect.h"
#include "multicast.h"

enum { TARGETS = 256, DELEGATES = 16 };

static void ignore(void *context, uint32_t event, const void *payload, size_t size) {}

void warm_up(void) {
  static multicast targets[TARGETS];
  multicast_delegate d = {ignore, NULL};
  for (int i = 0; i < TARGETS; ++i) {
    targets[i] = multicast_create();
    for (int j = 0; j < DELEGATES; ++j)
      EXPECT_EQ(multicast_add(targets[i], d, NULL, NULL), MULTICAST_OK);
    EXPECT_EQ(multicast_invoke(targets[i], 0, NULL, 0), DELEGATES);
  }
  for (int i = 0; i < TARGETS; ++i) EXPECT_EQ(multicast_destroy(targets[i]), MULTICAST_OK);
}
