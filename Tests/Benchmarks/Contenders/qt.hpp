#pragma once

#include <QByteArray>
#include <QObject>
#include <cstdint>
#include <string>

#include "slot.hpp"

class qt_sender : public QObject {
  Q_OBJECT
 Q_SIGNALS:
  void changed(quint32 event, const void *payload, quint64 size);
  void queued(quint32 event, const QByteArray &payload);
  void valued(quint64 value);
  void texted(const std::string &text);
};

struct qt_contender {
  static std::string name() { return "Qt 5 signals"; }
  static constexpr bool is_thread_safe = true;
  using token = QMetaObject::Connection;

  token add(multicast_function, void *context) {
    return QObject::connect(&sender, &qt_sender::changed, slot{context});
  }
  void remove(token &t) { QObject::disconnect(t); }
  void invoke(uint32_t event, const void *payload, size_t size) {
    Q_EMIT sender.changed(event, payload, size);
  }

 private:
  qt_sender sender;
};
