/// A GObject signal with the same arguments as a delegate, and a handler that does the work.
#pragma once

#include <glib-object.h>

#include "work.h"

inline void gobject_handle(GObject *, guint event, gpointer payload, gulong size,
                           gpointer context) {
  work(context, event, payload, size);
}

inline void gobject_call(GClosure *closure, gpointer function, gpointer instance, guint event,
                         gpointer payload, gulong size) {
  auto *own = reinterpret_cast<GCClosure *>(closure);
  auto callback = reinterpret_cast<decltype(&gobject_handle)>(function ? function : own->callback);
  callback(static_cast<GObject *>(instance), event, payload, size, closure->data);
}

// The code that glib-genmarshal generates for VOID:UINT,POINTER,ULONG. It is twice as fast as the
// generic marshaller.

inline void gobject_marshal(GClosure *closure, GValue *, guint, const GValue *values, gpointer,
                            gpointer function) {
  gobject_call(closure, function, g_value_peek_pointer(values), g_value_get_uint(values + 1),
               g_value_get_pointer(values + 2), g_value_get_ulong(values + 3));
}

inline void gobject_marshal_va(GClosure *closure, GValue *, gpointer instance, va_list given,
                               gpointer function, int, GType *) {
  va_list values;
  va_copy(values, given);
  const guint event = va_arg(values, guint);
  const gpointer payload = va_arg(values, gpointer);
  const gulong size = va_arg(values, gulong);
  va_end(values);
  gobject_call(closure, function, instance, event, payload, size);
}

inline guint gobject_signal_new(GType type, GSignalFlags flags) {
  const guint id = g_signal_new("changed", type, GSignalFlags(G_SIGNAL_RUN_LAST | flags), 0,
                                nullptr, nullptr, gobject_marshal, G_TYPE_NONE, 3, G_TYPE_UINT,
                                G_TYPE_POINTER, G_TYPE_ULONG);
  g_signal_set_va_marshaller(id, type, gobject_marshal_va);
  return id;
}
