#pragma once

#include <string>

#include "gobject_signal.hpp"

struct gobject_contender {
  static std::string name() { return "GObject signals"; }
  static constexpr bool is_thread_safe = true;
  using token = gulong;

  gobject_contender() : object(G_OBJECT(g_object_new(type(), nullptr))) { signal(); }
  ~gobject_contender() { g_object_unref(object); }
  gobject_contender(const gobject_contender &) = delete;

  token add(multicast_function, void *context) {
    return g_signal_connect(object, "changed", G_CALLBACK(gobject_handle), context);
  }
  void remove(token &t) { g_signal_handler_disconnect(object, t); }
  void remove_delegate(multicast_function, void *context) {
    g_signal_handlers_disconnect_by_func(object, reinterpret_cast<gpointer>(gobject_handle),
                                         context);
  }
  bool contains(multicast_function, void *context) {
    return g_signal_handler_find(object,
                                 GSignalMatchType(G_SIGNAL_MATCH_FUNC | G_SIGNAL_MATCH_DATA), 0, 0,
                                 nullptr, reinterpret_cast<gpointer>(gobject_handle), context) != 0;
  }
  bool pause_and_resume(token &t) {
    g_signal_handler_block(object, t);
    g_signal_handler_unblock(object, t);
    return true;
  }
  bool is_valid(token &t) { return g_signal_handler_is_connected(object, t); }
  void invoke(uint32_t event, const void *payload, size_t size) {
    g_signal_emit(object, signal(), 0, guint(event), payload, gulong(size));
  }

 private:
  static GType type() {
    static const GType registered = [] {
      GTypeInfo info{};
      info.class_size = sizeof(GObjectClass);
      info.instance_size = sizeof(GObject);
      return g_type_register_static(G_TYPE_OBJECT, "Benchmarked", &info, GTypeFlags(0));
    }();
    return registered;
  }
  static guint signal() {
    static const guint id = gobject_signal_new(type(), GSignalFlags(0));
    return id;
  }
  GObject *object;
};
