#include <string.h>

#include "calls.h"
#include "expect.h"
#include "history.h"
#include "options.h"
#include "values.h"

static multicast_broadcaster any_broadcaster(void) {
  multicast_broadcaster b = {any_handle()};
  if (any_byte() < 16) b = multicast_broadcaster_default();
  return b;
}

static multicast_delegate any_observer(void) {
  multicast_delegate d;
  d.function = any_function();
  d.context = any_context();
  return d;
}

static void create(void) {
  multicast_broadcaster_options *o = any_struct(sizeof *o);
  multicast_broadcaster b;
  if (o != NULL && o->struct_size >= sizeof *o && o->struct_size <= 1024) {
    o->flags = any_byte() < 250 ? 0 : any_uint32();
    if (any_byte() & 1) o->queue.id = any_handle();
  }
  b = multicast_broadcaster_create(o);
  NOTE("multicast_broadcaster_create() = %llx", (long long)b.id);
  keep_handle(b.id);
}

static void destroy(void) {
  multicast_broadcaster b = any_broadcaster();
  NOTE("multicast_broadcaster_destroy(%llx)", (long long)b.id);
  EXPECT_STATUS(multicast_broadcaster_destroy(b), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_STATE);
}

static void destroy_within(void) {
  multicast_broadcaster b = any_broadcaster();
  multicast_status status;
  NOTE("multicast_broadcaster_destroy_within(%llx)", (long long)b.id);
  status = multicast_broadcaster_destroy_within(b, any_timeout());
  EXPECT_STATUS(status, MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_STATE,
                MULTICAST_ERROR_TIMEOUT);
  EXPECT_EQ(multicast_broadcaster_is_valid(b), status == MULTICAST_ERROR_STATE);
}

static void register_many(void) {
  enum { SEVERAL = 3 };
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  multicast_delegate *d = any_bytes(SEVERAL * sizeof *d);
  multicast_add_options *o = any_options();
  multicast_token tokens[SEVERAL] = {{1}, {1}, {1}};
  size_t count = any_size(), i;
  multicast_status status;
  for (i = 0; i < SEVERAL; ++i) d[i] = any_observer();
  if (count > SEVERAL && count <= (size_t)1 << 26) count = SEVERAL;
  NOTE("multicast_broadcaster_register_many(%llx, %lld)", (long long)b.id, (long long)count);
  status = multicast_broadcaster_register_many(b, name, d, count, o, tokens);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY, MULTICAST_ERROR_LIMIT);
  if (count > SEVERAL) {
    EXPECT_EQ(status, MULTICAST_ERROR_LIMIT);
    EXPECT_EQ(tokens[0].id, 1);
    return;
  }
  for (i = 0; i < count; ++i) {
    EXPECT_EQ(tokens[i].id != 0, status == MULTICAST_OK);
    keep_handle(tokens[i].id);
  }
}

static void unregister_context(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  NOTE("multicast_broadcaster_unregister_context(%llx)", (long long)b.id);
  EXPECT_COUNT(multicast_broadcaster_unregister_context(b, name, any_context()),
               MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT);
}

static void register_one(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  multicast_add_options *o = any_options();
  multicast_token token = {1}, *out = any_byte() < 16 ? NULL : &token;
  multicast_status status;
  NOTE("multicast_broadcaster_register(%llx)", (long long)b.id);
  status = multicast_broadcaster_register(b, name, any_observer(), o, out);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY);
  if (out != NULL) EXPECT_EQ(token.id != 0, status == MULTICAST_OK);
  keep_handle(token.id);
}

static void unregister(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  NOTE("multicast_broadcaster_unregister(%llx)", (long long)b.id);
  EXPECT_STATUS(multicast_broadcaster_unregister(b, name, any_observer()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_NOT_FOUND);
}

static void unregister_all(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  NOTE("multicast_broadcaster_unregister_all(%llx)", (long long)b.id);
  EXPECT_COUNT(multicast_broadcaster_unregister_all(b, name), MULTICAST_ERROR_INVALID_HANDLE,
               MULTICAST_ERROR_INVALID_ARGUMENT);
}

static void notify(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  size_t size = any_byte() % 80;
  void *payload = any_byte() < 16 ? NULL : any_bytes(size);
  NOTE("multicast_broadcaster_notify(%llx, size %lld)", (long long)b.id, (long long)size);
  EXPECT_COUNT(multicast_broadcaster_notify(b, name, any_uint32(), payload, size),
               MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT, MULTICAST_ERROR_TIMEOUT);
}

static void attach(void) {
  multicast_broadcaster b = any_broadcaster();
  multicast_transport *t = any_transport();
  NOTE("multicast_broadcaster_attach(%llx)", (long long)b.id);
  EXPECT_STATUS(multicast_broadcaster_attach(b, t), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
                MULTICAST_ERROR_OUT_OF_MEMORY);
}

static void deliver(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  size_t size = any_byte() % 80;
  void *payload = any_byte() < 16 ? NULL : any_bytes(size);
  NOTE("multicast_broadcaster_deliver(%llx, size %lld)", (long long)b.id, (long long)size);
  EXPECT_COUNT(multicast_broadcaster_deliver(b, name, any_uint32(), payload, size),
               MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT,
               MULTICAST_ERROR_LIMIT);
}

static void look_up(void) {
  multicast_broadcaster b = any_broadcaster();
  const char *name = any_name(b);
  bool is_name = name != NULL && name[0] != '\0' && strlen(name) <= 255;
  multicast m = multicast_broadcaster_multicast(b, name);
  NOTE("multicast_broadcaster_multicast(%llx) = %llx", (long long)b.id, (long long)m.id);
  EXPECT(is_name || m.id == 0, "a multicast without a name");
  if (b.id != multicast_broadcaster_default().id) keep_handle(m.id);
}

static const any_call calls[] = {create,         destroy, register_one, register_one, unregister,
                                 unregister_all, notify,  notify,       look_up,
                                 destroy_within, register_many, unregister_context,
                                 attach, attach, deliver};
const call_table broadcaster_calls = {calls, sizeof calls / sizeof calls[0]};
