// How long does it take to add, remove or find a delegate, and to create and destroy a multicast?
//
// Each contender is measured for the operations that it supports; for instance, not all contenders
// can find a delegate. The figures do not include postponed work: Boost.Signals2, for example,
// frees the list entry of a removed slot later.

#include <linux/membarrier.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "batch.hpp"
#include "repeating_thread.hpp"

template <class Contender, class = void> struct has_remove_delegate : std::false_type {};
template <class Contender>
struct has_remove_delegate<Contender, std::void_t<decltype(&Contender::remove_delegate)>>
    : std::true_type {};

template <class Contender, class = void> struct has_contains : std::false_type {};
template <class Contender>
struct has_contains<Contender, std::void_t<decltype(&Contender::contains)>> : std::true_type {};

/// Measures how long the function takes, reports this time as the iteration's time, and returns it.
template <class Function>
static std::chrono::duration<double> timed(benchmark::State &state, Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  state.SetIterationTime(taken.count());
  return taken;
}

// ---- By the number of delegates -----------------------------------------------------------------
// An iteration handles one delegate. These functions return false if the time limit is exceeded.

template <class Contender> static bool add(benchmark::State &state, size_t count) {
  bool done = true;
  while (done && state.KeepRunningBatch(int64_t(batch<Contender>::copies(count) * count))) {
    batch<Contender> all(count);
    timed(state, [&] { done = all.fill(); });
  }
  return done;
}

template <class Contender> static bool add_many(benchmark::State &state, size_t count) {
  while (state.KeepRunningBatch(int64_t(batch<Contender>::copies(count) * count))) {
    batch<Contender> all(count);
    std::vector<multicast_delegate> delegates;
    for (auto &counter : all.counters) delegates.push_back({work_in_executable, &counter});
    all.tokens.resize(count);
    timed(state, [&] {
      for (auto &contender : all.contenders)
        contender.add_many(delegates.data(), count, all.tokens.data());
    });
  }
  return true;
}

/// Removes all delegates, in the order into which `arrange` puts their tokens.
template <class Contender>
static bool remove(benchmark::State &state, size_t count, void (*arrange)(batch<Contender> &)) {
  bool done = true;
  while (done && state.KeepRunningBatch(int64_t(batch<Contender>::copies(count) * count))) {
    batch<Contender> all(count);
    if (!all.fill()) return false;
    all.invoke();
    arrange(all);
    timed(state, [&] { done = all.empty(); });
  }
  return done;
}

template <class Contender> static bool remove_shuffled(benchmark::State &state, size_t count) {
  return remove<Contender>(state, count, [](batch<Contender> &all) { all.shuffle(); });
}

template <class Contender> static bool remove_reversed(benchmark::State &state, size_t count) {
  return remove<Contender>(state, count, [](batch<Contender> &all) { all.reverse(); });
}

/// Measures the unavoidable part of a random removal: reading the 32 bytes that a library has
/// stored about a delegate. Each read depends on the previous read. In a real removal, too, the
/// next read does not start early, because other instructions keep the processor busy.
static bool read_shuffled(benchmark::State &state, size_t count) {
  struct kept {
    size_t next;
    uint64_t others[3];
  };
  std::vector<kept> all(count);
  for (size_t i = 0; i < count; i++) all[i].next = i;
  std::mt19937 random(1);
  // Sattolo's algorithm makes a single cycle through all elements.
  for (size_t i = count - 1; i > 0; i--)
    std::swap(all[i].next, all[std::uniform_int_distribution<size_t>(0, i - 1)(random)].next);
  const size_t reads = std::max<size_t>(count, 1000);
  size_t place = 0;
  while (state.KeepRunningBatch(int64_t(reads)))
    timed(state, [&] {
      for (size_t i = 0; i < reads; i++) place = all[place].next;
    });
  benchmark::DoNotOptimize(place);
  return true;
}

/// Calls the function for at most one in ten delegates, so that the number of delegates stays close
/// to `count`. The chosen delegates are evenly spaced, because the result would depend on chance if
/// they were chosen at random. The calls are in random order.
template <class Contender, class Function>
static bool here_and_there(benchmark::State &state, size_t count, Function function) {
  const size_t each = std::clamp<size_t>(count / 10, 1, 3000000 / count);
  std::mt19937 random(1);
  while (state.KeepRunningBatch(int64_t(batch<Contender>::copies(count) * each))) {
    batch<Contender> all(count);
    if (!all.fill()) return false;
    all.invoke();
    std::vector<uint64_t *> contexts;
    for (size_t i = 0; i < each; i++)
      contexts.push_back(&all.counters[(2 * i + 1) * count / (2 * each)]);
    std::shuffle(contexts.begin(), contexts.end(), random);
    const auto taken = timed(state, [&] {
      for (auto &contender : all.contenders)
        for (auto context : contexts) function(contender, context);
    });
    if (taken > all.time_limit) return false;
  }
  return true;
}

template <class Contender> static bool remove_delegate(benchmark::State &state, size_t count) {
  return here_and_there<Contender>(state, count, [](Contender &contender, void *context) {
    contender.remove_delegate(work_in_executable, context);
  });
}

template <class Contender> static bool contains(benchmark::State &state, size_t count) {
  return here_and_there<Contender>(state, count, [](Contender &contender, void *context) {
    benchmark::DoNotOptimize(contender.contains(work_in_executable, context));
  });
}

/// Registers a measure for 1 to 1,000,000 delegates. After a contender has exceeded the time limit,
/// it is not measured with larger counts, because linear-time removals would take hours.
static void for_counts(const std::string &measure, const std::string &contender,
                       bool (*run)(benchmark::State &, size_t)) {
  auto enough = std::make_shared<size_t>(SIZE_MAX);
  for (size_t count = 1; count <= 1000000; count *= 10) {
    auto until_too_slow = [=](benchmark::State &state) {
      if (count < *enough && run(state, count)) return;
      *enough = std::min(*enough, count);
      state.SkipWithError(
          ("too slow: over 2 s for " + std::to_string(*enough) + " delegates").c_str());
    };
    add_benchmark(measure, contender, int64_t(count), until_too_slow)->UseManualTime();
  }
}

// ---- Empty, or with one delegate ----------------------------------------------------------------

template <class Contender> static void create_and_destroy(benchmark::State &state) {
  for (auto _ : state) {
    Contender contender;
    benchmark::ClobberMemory();
  }
}

template <class Contender> static void create_add_destroy(benchmark::State &state) {
  uint64_t counter = 0;
  for (auto _ : state) {
    Contender contender;
    contender.add(work_in_executable, &counter);
    benchmark::ClobberMemory();
  }
}

/// Adds and removes a delegate next to 16 others. If `is_released` is true, the delegate has a
/// release function, which bindings for other languages set for every delegate.
template <class library, bool is_released>
static void add_and_remove(benchmark::State &state) {
  uint64_t counter = 0;
  const multicast target = library::create();
  for (int i = 0; i < 16; i++)
    library::add(target, {work_in_executable, &counter}, nullptr, nullptr);
  library::invoke(target, 1, nullptr, 0);
  multicast_add_options options = multicast_add_options_default();
  if (is_released) options.release = [](void *context) { benchmark::DoNotOptimize(context); };
  for (auto _ : state) {
    multicast_token token;
    library::add(target, {work_in_executable, &counter}, &options, &token);
    library::token_remove(token);
  }
  library::destroy(target);
}

// ---- While another thread invokes ---------------------------------------------------------------
// A removal from libmulticast or liburcu waits until no call to the delegate is running. With the
// other contenders, waiting is the program's responsibility. Before the clock starts, each
// measurement makes sure that the other thread is running, because a memory barrier, for instance,
// costs little while no other thread is running.

static constexpr size_t invoked = 100;
static constexpr size_t at_a_time = 10;

/// A contender that another thread invokes continuously.
template <class Contender> struct filled_and_invoked : filled<Contender> {
  repeating_thread other{[this] { return [this] { this->contender.invoke(1, nullptr, 0); }; }};

  filled_and_invoked() : filled<Contender>(invoked) {}
};

/// Removes delegates at random positions. Each delegate is added again after the clock has stopped.
template <class Contender, class Function>
static void remove_invoked(benchmark::State &state, Function remove) {
  filled_and_invoked<Contender> full;
  std::vector<size_t> places(invoked);
  std::iota(places.begin(), places.end(), 0);
  std::mt19937 random(1);
  while (state.KeepRunningBatch(at_a_time)) {
    std::shuffle(places.begin(), places.end(), random);
    full.other.meet();
    timed(state, [&] {
      for (size_t i = 0; i < at_a_time; i++) remove(full.contender, full.tokens[places[i]]);
    });
    for (size_t i = 0; i < at_a_time; i++) {
      const size_t place = places[i];
      full.tokens[place] = full.contender.add(work_in_executable, &full.counters[place]);
    }
  }
}

template <class Contender> static void add_and_remove_invoked(benchmark::State &state) {
  uint64_t counter = 0;
  filled_and_invoked<Contender> full;
  while (state.KeepRunningBatch(at_a_time)) {
    full.other.meet();
    timed(state, [&] {
      for (size_t i = 0; i < at_a_time; i++) {
        auto token = full.contender.add(work_in_executable, &counter);
        full.contender.remove(token);
      }
    });
  }
}

/// Each of two threads adds a delegate next to 16 others, removes it, and invokes `invocations`
/// times. If this number is large, changes are rare. An iteration consists of these steps on one
/// thread, while the other thread does the same.
template <class Contender>
static void change_and_invoke(benchmark::State &state, size_t invocations) {
  filled<Contender> full(16);
  alignas(128) uint64_t counters[32] = {0};
  auto round = [&](uint64_t &counter) {
    auto token = full.contender.add(work_in_executable, &counter);
    full.contender.remove(token);
    for (size_t i = 0; i < invocations; i++) full.contender.invoke(1, nullptr, 0);
  };
  repeating_thread other([&] { return [&] { round(counters[0]); }; });
  while (state.KeepRunningBatch(at_a_time)) {
    other.meet();
    timed(state, [&] {
      for (size_t i = 0; i < at_a_time; i++) round(counters[16]);
    });
  }
}

/// In this function and the next one, each removed delegate counts as one iteration.
template <class Contender> static void remove_all_invoked(benchmark::State &state) {
  filled_and_invoked<Contender> full;
  while (state.KeepRunningBatch(invoked)) {
    full.other.meet();
    timed(state, [&] { full.contender.remove_all(); });
    for (auto &counter : full.counters) full.contender.add(work_in_executable, &counter);
  }
}

/// The other thread invokes one multicast after another. Some of the handles may be stale, but
/// invoking them is safe.
template <class library> static void destroy_invoked(benchmark::State &state) {
  std::vector<uint64_t> counters(invoked);
  std::atomic<uint64_t> next{0}, last{0};
  repeating_thread other([&] {
    return [&] {
      const multicast target{next};
      library::invoke(target, 1, nullptr, 0);
      last = target.id;
    };
  });
  while (state.KeepRunningBatch(invoked)) {
    const multicast target = library::create();
    for (auto &counter : counters)
      library::add(target, {work_in_executable, &counter}, nullptr, nullptr);
    next = target.id;
    while (last != target.id) std::this_thread::yield();
    timed(state, [&] { library::destroy(target); });
  }
}

/// Measures the system call that a removal makes in libmulticast and liburcu, and nothing else.
static void barrier(benchmark::State &state) {
  std::vector<uint64_t> counters(invoked);
  std::vector<multicast_delegate> delegates;
  for (auto &counter : counters) delegates.push_back({work_in_executable, &counter});
  repeating_thread other([&] {
    return [&] { bare_loops_in_executable[0](delegates.data(), invoked, 1, nullptr, 0); };
  });
  auto membarrier = [](int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; };
  bool done = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  while (done && state.KeepRunningBatch(at_a_time)) {
    other.meet();
    timed(state, [&] {
      for (size_t i = 0; i < at_a_time; i++)
        done = done && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    });
  }
  if (!done) state.SkipWithError(std::strerror(errno));
}

// ---- All contenders -----------------------------------------------------------------------------

template <class Contender> static void register_all() {
  const std::string name = Contender::name();
  for_counts("add", name, add<Contender>);
  for_counts("remove by token, random order", name, remove_shuffled<Contender>);
  for_counts("remove by token, last first", name, remove_reversed<Contender>);
  if constexpr (has_remove_delegate<Contender>::value)
    for_counts("remove by delegate", name, remove_delegate<Contender>);
  if constexpr (has_contains<Contender>::value) for_counts("contains", name, contains<Contender>);

  auto named = [](const char *measure, size_t parameter, auto run) {
    return add_benchmark(measure, Contender::name(), int64_t(parameter), run);
  };
  named("create and destroy", 0, create_and_destroy<Contender>);
  named("create, add one, destroy", 1, create_add_destroy<Contender>);
  if constexpr (Contender::is_thread_safe) {
    named("remove while another thread invokes", invoked, [](benchmark::State &state) {
      remove_invoked<Contender>(state, [](auto &contender, auto &token) {
        contender.remove(token);
      });
    })->UseManualTime();
    named("add and remove while another thread invokes", invoked,
          add_and_remove_invoked<Contender>)
        ->UseManualTime();
    for (const size_t invocations : {0, 1, 10, 100, 1000, 10000})
      named("change and invoke from two threads", invocations,
            [=](benchmark::State &state) { change_and_invoke<Contender>(state, invocations); })
          ->UseManualTime();
  }
}

template <class library> static void register_own() {
  using contender = libmulticast_contender<library>;
  for_counts("add_many", contender::name(), add_many<contender>);

  auto beside = [](const char *measure, auto run) {
    add_benchmark(measure, contender::name(), 16, run);
  };
  beside("add and remove", add_and_remove<library, false>);
  beside("add and remove with release", add_and_remove<library, true>);

  auto named = [](const char *measure, auto run) {
    add_benchmark(measure, contender::name(), invoked, run)->UseManualTime();
  };
  named("remove_nowait while another thread invokes", [](benchmark::State &state) {
    remove_invoked<contender>(state, [](auto &each, auto &token) { each.remove_nowait(token); });
  });
  named("remove_all while another thread invokes", remove_all_invoked<contender>);
  named("destroy while another thread invokes", destroy_invoked<library>);
}

int main(int argc, char **argv) {
  // Whether glibc returns memory to the system depends on previous deallocations, and benchmarks
  // run in any order. With these settings, glibc keeps all memory, so that no page faults are
  // measured.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);

  auto each_contender = [](auto each) {
    register_all<typename decltype(each)::contender>();
  };
  libmulticasts::for_each(each_contender);
  peers::for_each(each_contender);
  register_own<shared_library>();
  register_own<static_library>();
  for_counts("remove by token, random order", "memory, reads", read_shuffled);
  add_benchmark("membarrier", "Linux", invoked, barrier)->UseManualTime();
  return run_question(argc, argv, not_thread_safe());
}
