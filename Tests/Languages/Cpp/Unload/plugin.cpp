// A plug-in that uses all headers and is then unloaded. The plug-in's two builds differ in
// BUILD_NUMBER.
#include "plugin.hpp"

#include <memory>
#include <string>
#include <string_view>

#include <multicast/dispatcher.hpp>
#include <multicast/groups.hpp>
#include <multicast/next.hpp>
#include <multicast/slot.hpp>
#include <multicast/spy.hpp>
#include <multicast/watch.hpp>

namespace unload_tests {
namespace {

struct listener : mcast::observer {
  listener() = default;
  listener(const listener &) = delete;
  listener &operator=(const listener &) = delete;
  ~listener() { stop_observing(); }
  void hear(int) { ++calls; }
  int calls = 0;
};

int failures = 0;
void check(bool is_so) { failures += is_so ? 0 : 1; }

struct state {
  listener object;
  std::shared_ptr<listener> shared{new listener};  // std::make_shared() has a unique symbol, too
  mcast::groups<int> groups;
  mcast::scoped_registration own;
  mcast::lifetime lifetime;  // removes tracked objects, which otherwise remain until a look-up
};
state *all = nullptr;

void own_signals() {
  mcast::queue q;
  mcast::signal<void(std::string_view, int)> s;
  mcast::watch_options how;
  int called = 0;
  how.called = [&](mcast::registration, uint32_t, std::chrono::nanoseconds) { ++called; };
  const mcast::watch watched(s, how);
  mcast::spy seen(s);
  s.add([](std::string_view) {}, mcast::on(q) | mcast::label("queued"));
  s.add([](std::string_view, int) {}, mcast::once | mcast::at_front);
  s("text", 1);
  check(q.run() == 1 && seen.size() == 1 && called == 3);
  check(q.post([] {}) && q.post_and_wait([] { return 7; }) == 7);

  mcast::signal<int(int)> results;
  const mcast::slot<int(int)> slot = [](int i) { return 2 * i; };
  results.add(slot);
  int sum = 0;
  for (const int each : results.results(4)) sum += each;
  check(sum == 8 && results.collect(1).size() == 1 && results.all(1));

  mcast::signal<void(int)> replaying{mcast::replay(1)};
  replaying(3);
  int replayed = 0;
  replaying.add([&](int i) { replayed = i; });
  check(replayed == 3);

  mcast::dispatcher<int, void(int)> keys;
  keys.add(1, [](int) {});
  keys(1, 2);
  auto next = mcast::next(replaying);
  replaying(4);
  check(std::get<0>(*next.wait()) == 4);
}

}  // namespace
}  // namespace unload_tests

extern "C" {
__attribute__((visibility("default"))) int plugin_build() { return BUILD_NUMBER; }
__attribute__((visibility("default"))) int plug_in(unload_tests::event &s, mcast::queue &q) {
  using namespace unload_tests;
  all = new state;
  s.add(all->object, &listener::hear);
  s.add<&listener::hear>(all->object);
  s.add(all->shared, &listener::hear, mcast::under(all->lifetime));
  s.add(mcast::tracked([](int) {}, all->shared), all->groups.in(3) | mcast::under(all->lifetime));
  all->own = s.add([](int) {}, mcast::on(q));
  const mcast::scoped_pause paused(all->own);
  own_signals();
  return failures;
}
__attribute__((visibility("default"))) void plug_out() {
  delete unload_tests::all;
  unload_tests::all = nullptr;
}
}
