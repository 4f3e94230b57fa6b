#include "payloads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "callees.h"
#include "calls.h"
#include "expect.h"
#include "values.h"

enum { PAYLOADS = 4096, LARGEST = 80 };

static struct {
  void *block;
  size_t size;
} payloads[PAYLOADS];
static int count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* the threads of queues also use it */

void payloads_begin(void) { count = 0; }

void payloads_end(void) { EXPECT_EQ(count, 0); }

static void *keep(size_t size) {
  void *block = malloc(size > 0 ? size : 1);
  pthread_mutex_lock(&mutex);
  EXPECT(block != NULL && count < PAYLOADS, "the fuzz target is out of memory");
  payloads[count].block = block;
  payloads[count++].size = size;
  pthread_mutex_unlock(&mutex);
  return block;
}

void *payload_make(size_t size) {
  unsigned char *block = keep(size);
  for (size_t i = 0; i < size; ++i) block[i] = any_byte();
  return block;
}

static void end(const void *payload, size_t *size) {
  int i;
  pthread_mutex_lock(&mutex);
  for (i = 0; i < count && payloads[i].block != payload; ++i) continue;
  EXPECT(i < count, "a payload is released that the library does not have");
  *size = payloads[i].size;
  free(payloads[i].block);
  payloads[i] = payloads[--count];
  pthread_mutex_unlock(&mutex);
}

void payload_take_back(const void *payload) {
  size_t size;
  end(payload, &size);
}

void payload_release(const void *payload, size_t size) {
  size_t known;
  end(payload, &known);
  EXPECT_EQ(size, known);
  callee_call_on();
}

const void *payload_copy(const void *payload, size_t size) {
  EXPECT(is_fuzzing_thread(), "a copy on another thread");
  callee_call_on();
  if (any_byte() < 16) return NULL;
  void *copy = keep(size);
  if (size > 0) memcpy(copy, payload, size);
  return copy;
}

const void *payload_copy_forever(const void *payload, size_t size) {
  static const unsigned char zeros[LARGEST];
  EXPECT(size <= LARGEST, "a copy of the wrong size");
  callee_call_on();
  return any_byte() < 16 ? NULL : zeros;
}

multicast_invocation *any_invocation(void) {
  multicast_invocation *how = any_struct(sizeof *how);
  size_t size = any_byte() % LARGEST;
  if (how == NULL || how->struct_size < sizeof *how || how->struct_size > 1024) return how;
  uint8_t b = any_byte();
  how->flags = b < 240 ? b & MULTICAST_WAIT : any_uint32();
  how->event = any_uint32();
  how->reserved = any_byte() < 250 ? 0 : 1;
  how->timeout_ns = any_byte() < 64 ? 0 : any_uint32() % 100000;
  how->size = size;
  switch (any_byte() % 4) {
    case 0:
      how->payload = any_byte() < 16 ? NULL : any_bytes(size);
      break;
    case 1:
      how->payload = payload_make(size);
      how->release = payload_release;
      break;
    case 2:
      how->payload = any_byte() < 16 ? NULL : any_bytes(size);
      how->copy = payload_copy;
      how->release = payload_release;
      break;
    default:
      how->payload = any_byte() < 16 ? NULL : any_bytes(size);
      how->copy = payload_copy_forever;
  }
  return how;
}

bool is_readable(const multicast_invocation *how) {
  const unsigned char *bytes = (const unsigned char *)how;
  if (how == NULL || how->struct_size < sizeof *how || how->struct_size > 1024) return false;
  for (uint32_t i = sizeof *how; i < how->struct_size; ++i)
    if (bytes[i] != 0) return false;
  return (how->flags & ~MULTICAST_WAIT) == 0 && how->reserved == 0;
}
