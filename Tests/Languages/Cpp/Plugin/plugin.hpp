// The interface between a program and its plugin.
#ifndef TESTS_CPP_PLUGIN_PLUGIN_HPP
#define TESTS_CPP_PLUGIN_PLUGIN_HPP

#include <memory>
#include <thread>

#include <multicast.hpp>
#include <multicast/watch.hpp>

namespace plugin_tests {

struct listener {
  int calls = 0;
  void hear(int) { ++calls; }
};
using event = mcast::signal<void(int)>;

/// The functions of the plugin.
struct functions {
  std::thread::id (*post_and_wait)(mcast::queue &queue);
  mcast::scoped_pause (*pause)(const event &paused);
  mcast::watch (*watch)(const event &watched);
  mcast::registration (*add)(event &to, listener &what);
  mcast::registration (*add_shared)(event &to, const std::shared_ptr<listener> &what);
  mcast::exception_handler (*set_exception_handler)(mcast::exception_handler handler);
  void (*fail)();
};

}  // namespace plugin_tests

#endif
