#pragma once

#include <QCoreApplication>

/// Event loops need a QCoreApplication, which is never run. In these benchmarks, Qt's own event
/// dispatcher is several times faster than the default dispatcher, which uses GLib.
inline void make_qt_application() {
  qputenv("QT_NO_GLIB", "1");
  static int argc = 1;
  static char program[] = "question", *argv[] = {program, nullptr};
  static QCoreApplication made(argc, argv);
}
