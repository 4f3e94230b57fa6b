/// A signal with details, such as "changed::Protocol.Number1". This is how GObject supports
/// observers by name. All handlers are in one list, so an emission also visits the handlers of
/// other details.
#pragma once

#include <string>

#include "gobject_signal.hpp"

struct gobject_broadcaster_contender {
  static std::string name() { return "GObject, detailed signal"; }
  using found = GQuark;

  gobject_broadcaster_contender() : object(G_OBJECT(g_object_new(type(), nullptr))) { signal(); }
  ~gobject_broadcaster_contender() { g_object_unref(object); }
  gobject_broadcaster_contender(const gobject_broadcaster_contender &) = delete;

  void add(const std::string &name, void *context) {
    g_signal_connect(object, ("changed::" + name).c_str(), G_CALLBACK(gobject_handle), context);
  }
  found look_up(const std::string &name) { return g_quark_try_string(name.c_str()); }
  /// Does the same as g_signal_emit_by_name(), but is faster, because it does not look up
  /// "changed".
  void notify(const std::string &name, uint32_t event, const void *payload, size_t size) {
    g_signal_emit(object, signal(), look_up(name), guint(event), payload, gulong(size));
  }

 private:
  static GType type() {
    static const GType registered = [] {
      GTypeInfo info{};
      info.class_size = sizeof(GObjectClass);
      info.instance_size = sizeof(GObject);
      return g_type_register_static(G_TYPE_OBJECT, "BenchmarkedBroadcaster", &info,
                                    GTypeFlags(0));
    }();
    return registered;
  }
  static guint signal() {
    static const guint id = gobject_signal_new(type(), G_SIGNAL_DETAILED);
    return id;
  }
  GObject *object;
};
