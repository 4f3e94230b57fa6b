// Tests the C++ header with -fno-exceptions and -fno-rtti, where errors are reported as statuses.
// The exit status is the number of failed checks.
#include <multicast.hpp>
#include <multicast/dispatcher.hpp>
#include <multicast/groups.hpp>
#include <multicast/next.hpp>
#include <multicast/slot.hpp>
#include <multicast/spy.hpp>
#include <multicast/watch.hpp>

#include <cstdio>
#include <cstdlib>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be compiled with -fno-exceptions -fno-rtti"
#endif

namespace {
int failures;
void check(bool is_right, const char *what, int line) {
  if (is_right) return;
  std::printf("%s:%d: %s\n", __FILE__, line, what);
  ++failures;
}
struct object : mcast::observer {
  int sum = 0;
  void hear(const std::string &text) { sum += static_cast<int>(text.size()); }
};

bool fails_once;
void *allocate(void *, size_t size, size_t alignment) {
  if (std::exchange(fails_once, false)) return nullptr;
  return std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}
void deallocate(void *, void *block, size_t, size_t) { std::free(block); }
}  // namespace
#define CHECK(expression) check(expression, #expression, __LINE__)

namespace {
void check_without_memory() {
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  allocator.allocate = allocate;
  allocator.deallocate = deallocate;
  CHECK(multicast_set_allocator(&allocator) == MULTICAST_OK);
  mcast::signal<void(std::string)> s;
  fails_once = true;
  CHECK(!s.add([](const std::string &) {}));
  CHECK(mcast::last_error() == MULTICAST_ERROR_OUT_OF_MEMORY);
  CHECK(!fails_once);
  CHECK(s.add([](const std::string &) {}).is_valid());
  {
    object o;  // its lifetime cannot be created, so it must never be called
    fails_once = true;
    CHECK(!s.add(o, &object::hear));
    CHECK(mcast::last_error() == MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK(!fails_once);
  }
  CHECK(s.size() == 1);
}
void check_replays_and_watches() {
  mcast::signal<void(int)> s{mcast::replay(1)};
  int sum = 0, told = 0;
  s(7);
  const mcast::registration r = s.add([&](int n) { sum += n; });
  CHECK(sum == 7);
  mcast::policies how;
  how.replay = 1;
  const mcast::signal<void(int &)> references{how};
  CHECK(mcast::last_error() == MULTICAST_ERROR_INVALID_ARGUMENT);
  mcast::watch_options options;
  options.called = [&](mcast::registration, uint32_t, std::chrono::nanoseconds) { ++told; };
  const mcast::watch here(s, options), other(s, options);
  CHECK(mcast::last_error() == MULTICAST_ERROR_STATE);
  s(1);
  CHECK(told == 1);
  CHECK(r.statistics().calls == 1);
  CHECK(mcast::registration().statistics().calls == 0);
  CHECK(mcast::last_error() == MULTICAST_ERROR_INVALID_HANDLE);
}

void check_next_and_spies() {
  mcast::dispatcher<std::string, void(int)> events;
  mcast::signal<void(int)> &s = events["key"];
  const mcast::spy<mcast::signal<void(int)>> seen(s);
  auto next = mcast::next(s);
  events("key", 3);
  CHECK(next.wait() == std::tuple<int>(3));
  CHECK(seen.size() == 1);
  mcast::options how;
  how.lifetime = mcast::lifetime();  // this lifetime has ended already
  auto never = mcast::next(s, how);
  CHECK(mcast::last_error() == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(!never.wait());
}
}  // namespace

int main() {
  check_without_memory();
  mcast::signal<void(std::string)> s;
  mcast::queue q, full(1);
  object o;
  const auto shared = std::make_shared<object>();
  CHECK(s.add(o, &object::hear).is_valid());
  CHECK(s.add(shared, &object::hear, mcast::on(q)).is_valid());
  CHECK(s.invoke("four") == 2);
  CHECK(q.run() == 1);
  CHECK(o.sum == 4 && shared->sum == 4);

  void (object::*none)(const std::string &) = nullptr;
  CHECK(!s.add(o, none));
  CHECK(mcast::last_error() == MULTICAST_ERROR_INVALID_ARGUMENT);
  mcast::options how;
  how.lifetime = mcast::lifetime();  // this lifetime has ended already
  CHECK(!s.add([](const std::string &) {}, how));
  CHECK(mcast::last_error() == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(s.size() == 2);

  mcast::signal<void()> front;
  CHECK(front.add([] {}, mcast::priority(INT32_MAX)).is_valid());
  CHECK(!front.add([] {}, mcast::at_front));
  CHECK(mcast::last_error() == MULTICAST_ERROR_LIMIT);

  CHECK(full.post([] {}));
  CHECK(!full.post([] {}));
  q.start();
  CHECK(q.post_and_wait([] { return 5; }) == 5);
  CHECK(s.invoke_and_wait("six").finished == 1);

  mcast::signal<int(int)> answers;
  answers.add([](int n) { return n + 1; });
  CHECK(answers.collect(1) == std::vector<int>{2});
  check_replays_and_watches();
  check_next_and_spies();
  mcast::queue moved = std::move(full);
  CHECK(full.run() == 0);
  CHECK(mcast::last_error() == MULTICAST_ERROR_INVALID_HANDLE);
  return failures;
}
