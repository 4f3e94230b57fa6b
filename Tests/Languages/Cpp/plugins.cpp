// Tests that the header's per-process data is shared by a program and a plugin that hides its
// symbols. The plugin is in Plugin/.
#include <dlfcn.h>

#include "Plugin/plugin.hpp"
#include "test.hpp"

namespace plugin_tests {

const functions &plugin() {
  static const functions *const all = [] {
    void *const opened = dlopen(TESTS_CPP_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) throw std::runtime_error(dlerror());
    return static_cast<const functions *>(dlsym(opened, "plugin_functions"));
  }();
  return *all;
}

TEST_CASE("a plugin and its program tell threads apart alike") {
  mcast::queue q;
  q.run();
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<bool> is_over{false};
  bool is_made_here = false;
  // The first thread that calls the plugin is not the program's main thread.
  std::thread other([&] {
    is_made_here = plugin().post_and_wait(q) == here;
    is_over = true;
  });
  while (!is_over) {
    q.run();
    std::this_thread::yield();
  }
  other.join();
  CHECK(is_made_here);
  const bool is_still_here = plugin().post_and_wait(q) == here;
  CHECK(is_still_here);
}

TEST_CASE("what a plugin pauses is paused in the program") {
  event s;
  s.add([](int) {});
  {
    const mcast::scoped_pause pause = plugin().pause(s);
    CHECK(s.is_paused());
    CHECK(s.invoke(1) == 0);
  }
  CHECK(s.invoke(1) == 1);
}

TEST_CASE("what a plugin watches has no second watch in the program") {
  event s;
  const mcast::registration r = s.add([](int) {});
  const mcast::watch here = plugin().watch(s);
  CHECK(failure([&] { const mcast::watch other(s); }) == MULTICAST_ERROR_STATE);
  s(1);
  CHECK(r.statistics().calls == 1);
}

TEST_CASE("what a plugin adds is found by its object") {
  event s;
  listener object;
  const mcast::registration r = plugin().add(s, object);
  s(1);
  CHECK(object.calls == 1);
  CHECK(s.remove_object(object) == 1);
  CHECK_FALSE(r);
}

TEST_CASE("what a plugin adds dies with its object") {
  event s;
  auto object = std::make_shared<listener>();
  const mcast::registration r = plugin().add_shared(s, object);
  CHECK(r);
  object.reset();
  CHECK_FALSE(r);
  CHECK(s.empty());
}

TEST_CASE("a plugin and its program share errors and their handler") {
  const handled expected;
  const bool has_found_it = plugin().set_exception_handler(nullptr) != nullptr;
  CHECK(has_found_it);
  const bool is_still_there = mcast::set_exception_handler(nullptr) != nullptr;
  CHECK_FALSE(is_still_there);
  CHECK(failure(plugin().fail) == MULTICAST_ERROR_INVALID_ARGUMENT);
}

}  // namespace plugin_tests
