#pragma once

#include <QCoreApplication>

/// Event loops need a QCoreApplication, which is never run. Qt's own event dispatcher is used,
/// because the default dispatcher, which uses GLib, is several times slower in these benchmarks.
inline void make_qt_application() {
  qputenv("QT_NO_GLIB", "1");
  static int argc = 1;
  static char program[] = "question", *argv[] = {program, nullptr};
  static QCoreApplication made(argc, argv);
}
