/// The headers of the other libraries, precompiled: most of the time that it takes to compile the
/// programs went into these.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#ifdef HAS_BOOST
#include <boost/signals2.hpp>
#endif
#ifdef HAS_SIGCXX
#include <sigc++/sigc++.h>
#endif
#ifdef HAS_GLIB
#include <glib-object.h>
#endif
#ifdef HAS_QT
#include <QByteArray>
#include <QCoreApplication>
#include <QObject>
#include <QThread>
#endif
