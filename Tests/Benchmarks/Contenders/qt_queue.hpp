/// A queued connection to an object in a QThread, whose event loop makes the calls.
#pragma once

#include <QThread>
#include <string>

#include "qt.hpp"
#include "qt_application.hpp"
#include "receiver.hpp"

struct qt_queue_contender {
  static std::string name() { return "Qt 5 queued connection"; }
  static constexpr bool is_bounded = false;

  qt_queue_contender(receiver &to, uint32_t) : to(to) {
    make_qt_application();
    QObject::connect(
        &sender, &qt_sender::queued, &object,
        [&to](quint32 event, const QByteArray &payload) {
          to.receive(event, payload.constData(), size_t(payload.size()));
        },
        Qt::QueuedConnection);
  }
  ~qt_queue_contender() {
    thread.quit();
    thread.wait();
  }

  void push(uint32_t event, const void *payload, size_t size) {
    Q_EMIT sender.queued(event, QByteArray(static_cast<const char *>(payload), int(size)));
  }
  /// Called only before `start`.
  void run_one() { QCoreApplication::sendPostedEvents(); }

  void start() {
    object.moveToThread(&thread);
    thread.start();
  }
  void deliver() { to.wait(); }

 private:
  receiver &to;
  qt_sender sender;
  QObject object;
  QThread thread;
};
