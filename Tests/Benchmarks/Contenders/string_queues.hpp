/// Queues that pass a std::string to a later call on the same thread.
///
/// `push` queues one call with a string, and `run_one` makes that call. The receiver counts the
/// bytes.
#pragma once

#include <multicast.hpp>

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "list.hpp"
#ifdef HAS_QT
#include "qt.hpp"
#include "qt_application.hpp"
#endif

struct string_libmulticast {
  static std::string name() { return "libmulticast, C++"; }

  explicit string_libmulticast(size_t &bytes) {
    signal.add([&bytes](const std::string &text) { bytes += text.size(); }, mcast::on(queue));
  }
  void push(const std::string &text) { signal(text); }
  void run_one() { queue.run(1); }

 private:
  mcast::queue queue;
  mcast::signal<void(const std::string &)> signal;
};

#ifdef HAS_QT
struct string_qt {
  static std::string name() { return "Qt 5 queued connection"; }

  explicit string_qt(size_t &bytes) {
    make_qt_application();
    qRegisterMetaType<std::string>("std::string");
    QObject::connect(
        &sender, &qt_sender::texted, &object,
        [&bytes](const std::string &text) { bytes += text.size(); }, Qt::QueuedConnection);
  }
  void push(const std::string &text) { Q_EMIT sender.texted(text); }
  void run_one() { QCoreApplication::sendPostedEvents(); }

 private:
  qt_sender sender;
  QObject object;
};
#endif

struct string_deque {
  static std::string name() { return "mutex, std::deque of std::function"; }

  explicit string_deque(size_t &bytes) : bytes(bytes) {}
  void push(const std::string &text) {
    std::function<void()> call = [this, text] { bytes += text.size(); };
    std::lock_guard<std::mutex> guard(lock);
    waiting.push_back(std::move(call));
  }
  void run_one() {
    std::function<void()> call;
    {
      std::lock_guard<std::mutex> guard(lock);
      if (waiting.empty()) return;
      call = std::move(waiting.front());
      waiting.pop_front();
    }
    call();
  }

 private:
  size_t &bytes;
  std::mutex lock;
  std::deque<std::function<void()>> waiting;
};

using string_queues = contenders<string_libmulticast, WHEN(HAS_QT, string_qt, ) string_deque>;
