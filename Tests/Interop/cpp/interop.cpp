// libmulticast from C++17, with dlopen: closures as delegates, behind one trampoline.
// Argument: the path of libmulticast.so.
#include <dlfcn.h>
#include <multicast.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

// ---- Checks -------------------------------------------------------------------------------------

static std::atomic<int> checks, failures;

template <class A, class E>
static void check(const char *expression, const A &actual, const E &expected, int line) {
  ++checks;
  if (actual == expected) return;
  ++failures;
  std::cout << __FILE__ << ":" << line << ": " << expression << ": " << actual << " is not "
            << expected << "\n";
}
#define CHECK(actual, expected) check(#actual, actual, expected, __LINE__)

// ---- The library: its functions have the types that the header gives them -----------------------

struct Library {
  void *handle;

  explicit Library(const char *path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) fail();
  }

  void *symbol(const char *name) const {
    void *address = dlsym(handle, name);
    if (address == nullptr) fail();
    return address;
  }

  [[noreturn]] static void fail() {
    std::cout << dlerror() << "\n";
    std::exit(1);
  }
};

static Library *library;
#define LOAD(name) reinterpret_cast<decltype(&::name)>(library->symbol(#name))

// ---- Delegates ----------------------------------------------------------------------------------

// The context of a delegate. The trampoline is noexcept: an exception must not pass through the
// library, and ends the program here.
using Closure = std::function<void(uint32_t, std::string_view)>;

static void call(void *context, uint32_t event, const void *payload, size_t size) noexcept {
  (*static_cast<Closure *>(context))(event, {static_cast<const char *>(payload), size});
}

static multicast_delegate delegate(Closure &closure) { return {call, &closure}; }

static std::string calls;

static std::string taken() { return std::exchange(calls, {}); }

static Closure listener(const char *name) {
  return [name](uint32_t event, std::string_view payload) {
    calls.append(name).append(std::to_string(event)).append(payload).append(";");
  };
}

static bool readable(int fd) {
  pollfd watched = {fd, POLLIN, 0};
  return poll(&watched, 1, 0) == 1 && watched.revents == POLLIN;
}

// ---- The tests ----------------------------------------------------------------------------------

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  Library opened(argv[1]);
  library = &opened;
  const auto create = LOAD(multicast_create);
  const auto destroy = LOAD(multicast_destroy);
  const auto add = LOAD(multicast_add);
  const auto remove = LOAD(multicast_remove);
  const auto remove_every = LOAD(multicast_remove_every);
  const auto create_error = LOAD(multicast_create_error);
  const auto invoke = LOAD(multicast_invoke);
  const auto count = LOAD(multicast_count);
  const auto token_remove = LOAD(multicast_token_remove);
  const auto token_is_live = LOAD(multicast_token_is_live);
  const auto lifetime_create = LOAD(multicast_lifetime_create);
  const auto lifetime_end = LOAD(multicast_lifetime_end);
  const auto queue_create = LOAD(multicast_queue_create);
  const auto queue_destroy = LOAD(multicast_queue_destroy);
  const auto queue_fd = LOAD(multicast_queue_fd);
  const auto queue_run = LOAD(multicast_queue_run);
  const auto queue_start = LOAD(multicast_queue_start);
  const auto queue_get_stats = LOAD(multicast_queue_get_stats);
  const auto status_name = LOAD(multicast_status_name);

  CHECK(LOAD(multicast_version)() >> 16, unsigned{MULTICAST_VERSION_MAJOR});
  CHECK(LOAD(multicast_version)() >= MULTICAST_VERSION, true);

  const multicast m = create();
  Closure one = listener("one"), two = listener("two");
  CHECK(LOAD(multicast_is_valid)(m), true);
  CHECK(add(m, delegate(one), nullptr, nullptr), MULTICAST_OK);
  CHECK(add(m, delegate(two), nullptr, nullptr), MULTICAST_OK);
  CHECK(invoke(m, 7, "hel\0lo", 6), 2);
  CHECK(taken(), std::string_view("one7hel\0lo;two7hel\0lo;", 22));
  CHECK(remove(m, delegate(one)), MULTICAST_OK);
  CHECK(remove(m, delegate(one)), MULTICAST_ERROR_NOT_FOUND);
  CHECK(invoke(m, 8, "x", 1), 1);
  CHECK(taken(), "two8x;");
  CHECK(add(m, delegate(one), nullptr, nullptr), MULTICAST_OK);
  CHECK(add(m, delegate(one), nullptr, nullptr), MULTICAST_OK);
  CHECK(remove_every(m, delegate(one)), MULTICAST_OK);  // both
  CHECK(remove_every(m, delegate(one)), MULTICAST_ERROR_NOT_FOUND);

  // Under a lifetime.
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = lifetime_create();
  CHECK(add(m, delegate(one), &options, nullptr), MULTICAST_OK);
  CHECK(invoke(m, 9, nullptr, 0), 2);
  CHECK(taken(), "two9;one9;");
  CHECK(lifetime_end(options.lifetime), MULTICAST_OK);
  CHECK(lifetime_end(options.lifetime), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(count(m), 1);

  // A closure that the library owns: its captures are freed by `release`, and not before.
  auto alive = std::make_shared<int>();
  auto owned = new Closure([alive](uint32_t, std::string_view) { calls.append("owned;"); });
  multicast_token token;
  options = multicast_add_options_default();
  options.priority = 1;
  options.release = [](void *context) { delete static_cast<Closure *>(context); };
  CHECK(add(m, delegate(*owned), &options, &token), MULTICAST_OK);
  CHECK(invoke(m, 10, nullptr, 0), 2);
  CHECK(taken(), "owned;two10;");
  CHECK(alive.use_count(), 2);
  CHECK(token_remove(token), MULTICAST_OK);
  CHECK(token_remove(token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(token_is_live(token), false);
  CHECK(alive.use_count(), 1);

  // Removal waits for a call on another thread.
  std::atomic<bool> inside = false, done = false;
  Closure slow = [&](uint32_t, std::string_view) {
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
  };
  CHECK(add(m, delegate(slow), nullptr, nullptr), MULTICAST_OK);
  std::thread invoking([&] { CHECK(invoke(m, 0, nullptr, 0), 2); });
  while (!inside) std::this_thread::yield();
  CHECK(remove(m, delegate(slow)), MULTICAST_OK);
  CHECK(done.load(), true);
  invoking.join();
  taken();
  CHECK(destroy(m), MULTICAST_OK);
  CHECK(LOAD(multicast_is_valid)(m), false);

  // A queue that this thread runs, then one with a thread of its own.
  const multicast queued = create();
  options = multicast_add_options_default();
  options.queue = queue_create(nullptr);
  const int fd = queue_fd(options.queue);
  CHECK(add(queued, delegate(one), &options, nullptr), MULTICAST_OK);
  CHECK(readable(fd), false);
  std::string payload = "later";
  CHECK(invoke(queued, 3, payload.data(), payload.size()), 1);
  payload.replace(0, 5, "XXXXX"); // the queue has its own copy
  CHECK(taken(), "");
  CHECK(readable(fd), true);
  multicast_queue_stats stats = multicast_queue_stats_default();
  CHECK(queue_get_stats(options.queue, &stats), MULTICAST_OK);
  CHECK(stats.pending, 1u);
  CHECK(queue_run(options.queue, 0), 1);
  CHECK(taken(), "one3later;");
  CHECK(readable(fd), false);
  CHECK(queue_get_stats(options.queue, &stats), MULTICAST_OK);
  CHECK(stats.delivered, 1u);
  CHECK(stats.pending, 0u);

  std::atomic<bool> called = false;
  std::thread::id runner;
  Closure on_queue = [&](uint32_t, std::string_view) {
    runner = std::this_thread::get_id();
    called = true;
  };
  CHECK(add(queued, delegate(on_queue), &options, nullptr), MULTICAST_OK);
  CHECK(queue_start(options.queue), MULTICAST_OK);
  CHECK(invoke(queued, 4, nullptr, 0), 2);
  while (!called) std::this_thread::yield();
  CHECK(runner == std::this_thread::get_id(), false);
  CHECK(queue_destroy(options.queue), MULTICAST_OK);
  CHECK(taken(), "one4;");
  CHECK(count(queued), 0);

  // A queue with options.
  multicast_queue_options wanted = multicast_queue_options_default();
  wanted.capacity = 1;
  wanted.overflow = MULTICAST_OVERFLOW_DROP_OLDEST;
  options.queue = queue_create(&wanted);
  CHECK(create_error(), MULTICAST_OK);
  CHECK(add(queued, delegate(one), &options, nullptr), MULTICAST_OK);
  CHECK(invoke(queued, 5, "old", 3), 1);
  CHECK(invoke(queued, 6, "new", 3), 1);
  CHECK(queue_run(options.queue, 0), 1);
  CHECK(taken(), "one6new;");
  CHECK(queue_destroy(options.queue), MULTICAST_OK);

  // Bad calls.
  wanted.struct_size = 1;
  CHECK(queue_create(&wanted).id, 0u);
  CHECK(create_error(), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(add({0}, delegate(one), nullptr, nullptr), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(invoke({0xDEADBEEFDEADBEEF}, 0, nullptr, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(destroy({lifetime_create().id}), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(remove(queued, delegate(one)), MULTICAST_ERROR_NOT_FOUND);
  CHECK(invoke(queued, 0, nullptr, 5), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(add(queued, {nullptr, nullptr}, nullptr, nullptr), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(status_name(MULTICAST_OK), std::string_view("MULTICAST_OK"));
  CHECK(status_name(MULTICAST_ERROR_NOT_FOUND), std::string_view("MULTICAST_ERROR_NOT_FOUND"));
  CHECK(destroy(queued), MULTICAST_OK);

  if (failures == 0) std::cout << "cpp: " << checks << " checks passed\n";
  else std::cout << "cpp: " << failures << " of " << checks << " checks failed\n";
  return failures > 0;
}
