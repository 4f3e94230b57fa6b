// Uses each name that the module exports.
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

import multicast;

namespace {

int failures;
void check(bool is_right, int line) {
  if (is_right) return;
  std::printf("line %d failed\n", line);
  ++failures;
}
#define CHECK(...) check((__VA_ARGS__), __LINE__)

struct listener : mcast::observer {
  int heard = 0;
  void hear(const std::string &text) { heard += static_cast<int>(text.size()); }
};

}  // namespace

int main() {
  mcast::signal<void(const std::string &)> said;
  mcast::queue loop;
  mcast::lifetime window;
  mcast::groups<std::string> groups;
  int queued = 0;
  {
    listener here;
    said.add(&here, &listener::hear);
    mcast::scoped_registration later = said.add(
        [&](const std::string &text) { queued += static_cast<int>(text.size()); },
        mcast::on(loop) | mcast::under(window) | mcast::latest);
    CHECK(later.get() == later.get());
    said("four");
    CHECK(here.heard == 4);
    CHECK(queued == 0);
    CHECK(loop.run() == 1);
    CHECK(queued == 4);
  }
  CHECK(said.empty());

  mcast::signal<int(int)> asked;
  auto object = std::make_shared<int>(7);
  asked.add([](int n) { return n; }, groups.in("first") | mcast::once);
  asked.add(mcast::tracked([](int n) { return 2 * n; }, object), mcast::at_front);
  const mcast::registration third =
      asked.connectable().add([](int n) { return 3 * n; }, mcast::priority(-1) | mcast::unique);
  int sum = 0;
  for (const int each : asked.results(1)) sum = 10 * sum + each;
  CHECK(sum == 213);
  object.reset();
  {
    const mcast::scoped_pause pause(third);
    CHECK(asked.collect(1).empty());
  }
  const auto add = [](int &all, int each) {
    all += each;
    return mcast::step::stop;
  };
  CHECK(asked.fold(0, add, 1) == 3);
  CHECK(!mcast::current());
  CHECK(third.remove() == MULTICAST_OK);
  try {
    said.add(static_cast<void (*)(const std::string &)>(nullptr), mcast::options());
    CHECK(false);
  } catch (const mcast::error &error) {
    CHECK(error.status() == MULTICAST_ERROR_INVALID_ARGUMENT);
  }
  mcast::signal<void(int)> doors{mcast::replay(1)};
  {
    mcast::watch_options how;
    how.called = [&](auto...) { ++queued; };
    const mcast::watch here(doors, how);
    doors(1);
    const mcast::registration door = doors.add([](int) {});
    CHECK(static_cast<bool>(doors.listener_flag()));
    const mcast::registration late = doors.add([](int) {}, mcast::no_replay);
    doors(2);
    const mcast::call_statistics counted = door.statistics();
    CHECK(counted.calls == 2);
    CHECK(late.statistics().calls == 1);
    CHECK(queued == 4 + 3);
  }
  mcast::dispatcher<int, void(int)> events;
  const mcast::spy<mcast::signal<void(int)>> seen(events[3]);
  mcast::next_invocation<int> next = mcast::next(events[3]);
  events(3, 4);
  CHECK(next.wait() == std::tuple<int>(4));
  CHECK(seen.size() == 1);
  CHECK(mcast::set_exception_handler(nullptr) == nullptr);
  CHECK(!mcast::to_weak(std::make_shared<int>(1)).expired());
  if (failures == 0) std::puts("the module has what it is to have");
  return failures != 0;
}
