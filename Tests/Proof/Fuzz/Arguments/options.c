#include "options.h"

#include "callees.h"
#include "values.h"

enum { SIZE_OF_1_0 = 64 }; /* of multicast_add_options */
enum { SMALLEST_WATCH = 48 };

multicast_add_options *any_options(void) {
  multicast_add_options *o = any_older_struct(SIZE_OF_1_0, sizeof *o);
  if (o == NULL || o->struct_size < sizeof *o || o->struct_size > 1024) return o;
  uint8_t b = any_byte();
  o->flags = b < 240 ? b & 15u : any_uint32();
  o->priority = (int32_t)(any_byte() < 128 ? any_byte() : any_uint32());
  o->reserved = any_byte() < 250 ? 0 : 1;
  o->events = any_byte() < 128 ? 0 : any_uint64();
  b = any_byte();
  if (b & 1) o->lifetime.id = any_handle();
  if (b & 2) o->queue.id = any_handle();
  if (b & 4) o->release = callee_release;
  if ((b & 0x18) == 0x18) o->lock = callee_lock, o->unlock = callee_unlock;
  if ((b & 0xF8) == 0x20) o->lock = callee_lock;
  if ((b & 0xF8) == 0x40) o->unlock = callee_unlock;
  if (any_byte() < 64) o->label = any_text();
  return o;
}

multicast_watch *any_watch(void) {
  multicast_watch *w = any_older_struct(SMALLEST_WATCH, sizeof *w);
  if (w == NULL || w->struct_size < sizeof *w || w->struct_size > 1024) return w;
  uint8_t b = any_byte();
  w->reserved = any_byte() < 250 ? 0 : 1;
  w->context = (void *)&callee_functions;
  w->slow_ns = b < 64 ? 0 : b < 128 ? 1 : any_uint32();
  if (b & 1) w->slow = callee_slow;
  if (b & 2) w->stuck = callee_slow;
  if (b & 4) w->called = callee_called;
  if (b & 8) w->listener_warning = callee_listener_warning;
  w->listener_warning_count = b < 128 ? b & 3u : any_uint64();
  return w;
}

multicast_create_options *any_create_options(void) {
  multicast_create_options *o = any_struct(sizeof *o);
  if (o == NULL || o->struct_size < sizeof *o || o->struct_size > 1024) return o;
  uint8_t b = any_byte();
  o->reentry = b < 240 ? b & 3u : any_uint32();
  b = any_byte();
  o->flags = b < 200 ? 0 : b < 240 ? MULTICAST_VISIT_ONLY : any_uint32();
  b = any_byte();
  if (b & 1) o->label = "any";
  if (b & 2) o->release_context = callee_release;
  if ((b & 0xC) == 0xC) o->lock_context = callee_lock, o->unlock_context = callee_unlock;
  if (b & 0x10) o->listeners_changed = callee_listeners_changed;
  if (b & 0x20) o->release = callee_release;
  if (b == 4) o->lock_context = callee_lock;
  if (b == 8) o->unlock_context = callee_unlock;
  b = any_byte();
  o->replay = b < 128 ? 0 : b < 240 ? b & 7u : any_uint32();
  return o;
}

multicast_transport *any_transport(void) {
  multicast_transport *t = any_struct(sizeof *t);
  if (t == NULL || t->struct_size < sizeof *t || t->struct_size > 1024) return t;
  uint8_t b = any_byte();
  t->flags = b < 240 ? b % 2 * MULTICAST_TRANSPORT_PREFIXES : any_uint32();
  t->context = (void *)&callee_functions;
  b = any_byte();
  if (b >= 16) t->publish = callee_publish;
  if (b & 1) t->subscribe = callee_subscribe;
  if (b & 2) t->unsubscribe = callee_unsubscribe;
  if (b & 4) t->release = callee_release;
  return t;
}

multicast_broadcaster_options *any_broadcaster_options(void) {
  multicast_broadcaster_options *o = any_struct(sizeof *o);
  if (o == NULL || o->struct_size < sizeof *o || o->struct_size > 1024) return o;
  o->flags = any_byte() < 250 ? 0 : any_uint32();
  if (any_byte() & 1) o->queue.id = any_handle();
  return o;
}
