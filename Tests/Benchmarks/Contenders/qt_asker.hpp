/// An asker that calls QMetaObject::invokeMethod() with Qt::BlockingQueuedConnection, on an object
/// in a QThread.
#pragma once

#include <QMetaObject>
#include <QObject>
#include <QThread>
#include <string>

#include "answer.hpp"
#include "qt_application.hpp"

struct qt_asker {
  static std::string name() { return "Qt 5 blocking connection"; }

  qt_asker() {
    make_qt_application();
    object.moveToThread(&thread);
    thread.start();
  }
  ~qt_asker() {
    thread.quit();
    thread.wait();
  }

  uint64_t ask(uint64_t question) {
    uint64_t result = 0;
    QMetaObject::invokeMethod(
        &object, [question] { return answer(question); }, Qt::BlockingQueuedConnection, &result);
    return result;
  }

 private:
  QObject object;
  QThread thread;
};
