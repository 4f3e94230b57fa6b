/// Methods of objects. An `object` connects itself to the contender's signal when it is created,
/// and is disconnected when it is destroyed.
#pragma once

#include <multicast.hpp>

#include <cstdint>
#include <string>

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

struct observer_methods {
  static std::string name() { return "libmulticast, C++, observer"; }
  static constexpr bool is_thread_safe = true;
  struct object : mcast::observer {
    object(observer_methods &all, uint64_t &to) : sum(to) { all.signal.add<&object::hear>(*this); }
    void hear(uint64_t value) { sum += value; }
    uint64_t &sum;
  };
  void emit(uint64_t value) { signal(value); }

 private:
  mcast::signal<void(uint64_t)> signal;
};

struct scoped_methods {
  static std::string name() { return "libmulticast, C++, scoped_registration"; }
  static constexpr bool is_thread_safe = true;
  struct object {
    object(scoped_methods &all, uint64_t &to)
        : sum(to), registration(all.signal.add<&object::hear>(*this)) {}
    object(const object &) = delete;
    void hear(uint64_t value) { sum += value; }
    uint64_t &sum;
    mcast::scoped_registration registration;
  };
  void emit(uint64_t value) { signal(value); }

 private:
  mcast::signal<void(uint64_t)> signal;
};

#ifdef HAS_BOOST
struct boost_methods {
  static std::string name() { return "Boost.Signals2"; }
  static constexpr bool is_thread_safe = true;
  struct object {
    object(boost_methods &all, uint64_t &to)
        : sum(to), connection(all.signal.connect([this](uint64_t value) { hear(value); })) {}
    object(const object &) = delete;
    void hear(uint64_t value) { sum += value; }
    uint64_t &sum;
    boost::signals2::scoped_connection connection;
  };
  void emit(uint64_t value) { signal(value); }

 private:
  boost::signals2::signal<void(uint64_t)> signal;
};
#endif

#ifdef HAS_SIGCXX
struct sigcxx_methods {
  static std::string name() { return "libsigc++"; }
  static constexpr bool is_thread_safe = false;
  struct object : sigc::trackable {
    object(sigcxx_methods &all, uint64_t &to) : sum(to) {
      all.signal.connect(sigc::mem_fun(*this, &object::hear));
    }
    void hear(uint64_t value) { sum += value; }
    uint64_t &sum;
  };
  void emit(uint64_t value) { signal.emit(value); }

 private:
  sigc::signal<void, uint64_t> signal;
};
#endif

#ifdef HAS_QT
struct qt_methods {
  static std::string name() { return "Qt 5 signals"; }
  static constexpr bool is_thread_safe = true;
  struct object : QObject {
    object(qt_methods &all, uint64_t &to) : sum(to) {
      QObject::connect(&all.sender, &qt_sender::valued, this, &object::hear);
    }
    void hear(quint64 value) { sum += value; }
    uint64_t &sum;
  };
  void emit(uint64_t value) { Q_EMIT sender.valued(value); }

 private:
  qt_sender sender;
};
#endif

using methods =
    contenders<observer_methods, WHEN(HAS_BOOST, boost_methods, )
                   WHEN(HAS_SIGCXX, sigcxx_methods, ) WHEN(HAS_QT, qt_methods, ) scoped_methods>;
