/// C++ signals with a typed argument, and closures of any size.
///
/// `connect` takes any callable and returns a connection, `disconnect` ends the connection, and
/// `emit` calls all callables.
#pragma once

#include <multicast.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "list.hpp"
#ifdef HAS_BOOST
#include <boost/signals2.hpp>
#endif
#ifdef HAS_SIGCXX
#include <sigc++/sigc++.h>
#endif
#ifdef HAS_QT
#include "qt.hpp"
#endif

struct typed_libmulticast {
  static std::string name() { return "libmulticast, C++"; }
  static constexpr bool is_thread_safe = true;
  template <class F> auto connect(F f) { return signal.add(f); }
  template <class C> void disconnect(C &c) { c.remove(); }
  void emit(uint64_t value) { signal(value); }

 private:
  mcast::signal<void(uint64_t)> signal;
};

#ifdef HAS_BOOST
struct typed_boost {
  static std::string name() { return "Boost.Signals2"; }
  static constexpr bool is_thread_safe = true;
  template <class F> auto connect(F f) { return signal.connect(f); }
  template <class C> void disconnect(C &c) { c.disconnect(); }
  void emit(uint64_t value) { signal(value); }

 private:
  boost::signals2::signal<void(uint64_t)> signal;
};
#endif

#ifdef HAS_SIGCXX
struct typed_sigcxx {
  static std::string name() { return "libsigc++"; }
  static constexpr bool is_thread_safe = false;
  template <class F> sigc::connection connect(F f) { return signal.connect(f); }
  template <class C> void disconnect(C &c) { c.disconnect(); }
  void emit(uint64_t value) { signal.emit(value); }

 private:
  sigc::signal<void, uint64_t> signal;
};
#endif

#ifdef HAS_QT
struct typed_qt {
  static std::string name() { return "Qt 5 signals"; }
  static constexpr bool is_thread_safe = true;
  template <class F> auto connect(F f) {
    return QObject::connect(&sender, &qt_sender::valued, f);
  }
  template <class C> void disconnect(C &c) { QObject::disconnect(c); }
  void emit(uint64_t value) { Q_EMIT sender.valued(value); }

 private:
  qt_sender sender;
};
#endif

/// A signal without a library, like the contender in mutex.hpp.
struct typed_mutex {
  static std::string name() { return "mutex, std::function"; }
  static constexpr bool is_thread_safe = true;
  template <class F> uint64_t connect(F f) {
    std::lock_guard<std::mutex> guard(lock);
    own_copy().emplace_back(++last, f);
    return last;
  }
  void disconnect(uint64_t &id) {
    std::lock_guard<std::mutex> guard(lock);
    auto &own = own_copy();
    for (auto i = own.begin(); i != own.end(); ++i)
      if (i->first == id) { own.erase(i); return; }
  }
  void emit(uint64_t value) {
    std::shared_ptr<const functions> now;
    {
      std::lock_guard<std::mutex> guard(lock);
      now = current;
    }
    for (auto &each : *now) each.second(value);
  }

 private:
  using functions = std::vector<std::pair<uint64_t, std::function<void(uint64_t)>>>;

  functions &own_copy() {
    if (current.use_count() > 1) current = std::make_shared<functions>(*current);
    return *current;
  }

  std::mutex lock;
  std::shared_ptr<functions> current = std::make_shared<functions>();
  uint64_t last = 0;
};

using typed_signals =
    contenders<typed_libmulticast, WHEN(HAS_BOOST, typed_boost, ) WHEN(HAS_SIGCXX, typed_sigcxx, )
                   WHEN(HAS_QT, typed_qt, ) typed_mutex>;
