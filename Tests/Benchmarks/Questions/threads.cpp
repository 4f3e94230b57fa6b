// Do invoking threads slow each other, and does a thread that adds and removes slow one that
// invokes?
//
// Compiled with WORK_READS, see work.h: delegates that write would move their cache lines between
// the threads, whatever the library does.

#include <chrono>
#include <deque>

#include "contenders.hpp"
#include "question.hpp"
#include "repeating_thread.hpp"

static constexpr size_t delegates = 16;

template <class Contender> static void invoke(Contender &contender) {
  contender.invoke(1, nullptr, 0);
  benchmark::ClobberMemory();
}

// ---- Threads that invoke ------------------------------------------------------------------------

/// The invocations of all threads in total, while all of them run. (With a fixed number for each,
/// and more threads than processors, the last thread would run alone.) An iteration is a period of
/// time.
static void throughput(benchmark::State &state, const std::deque<repeating_thread> &threads) {
  auto sum = [&] {
    uint64_t rounds = 0;
    for (auto &thread : threads) rounds += thread.rounds();
    return rounds;
  };
  uint64_t invocations = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t before = sum();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    invocations += sum() - before;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(taken.count());
  }
  state.SetItemsProcessed(int64_t(invocations));
}

template <class Contender> static void invoke_one(benchmark::State &state, int count) {
  filled<Contender> full(delegates);
  std::deque<repeating_thread> threads;
  for (int i = 0; i < count; i++) {
    threads.emplace_back([&] { return [&] { invoke(full.contender); }; });
  }
  throughput(state, threads);
}

template <class Contender> static void invoke_one_each(benchmark::State &state, int count) {
  std::deque<repeating_thread> threads;
  for (int i = 0; i < count; i++) {
    threads.emplace_back([] {
      return [own = std::make_unique<filled<Contender>>(delegates)] { invoke(own->contender); };
    });
  }
  throughput(state, threads);
}

// ---- A thread that changes ----------------------------------------------------------------------

template <class Contender> static void invoke_while_changed(benchmark::State &state) {
  filled<Contender> full(delegates);
  uint64_t counter = 0;
  repeating_thread changing([&] {
    return [&] {
      auto token = full.contender.add(work_in_executable, &counter);
      full.contender.remove(token);
    };
  });
  const uint64_t before = changing.rounds();
  for (auto _ : state) invoke(full.contender);
  const uint64_t changes = 2 * (changing.rounds() - before);  // one added, one removed
  state.counters["changes_per_second"] =
      benchmark::Counter(double(changes), benchmark::Counter::kIsRate);
}

int main(int argc, char **argv) {
  for (int count : {1, 2, 4}) {
    auto together = [&](auto each) {
      using contender = typename decltype(each)::contender;
      if constexpr (contender::is_thread_safe)
        benchmark::RegisterBenchmark(
            label("invoke one multicast from threads", contender::name(), count).c_str(),
            invoke_one<contender>, count)
            ->UseManualTime();
    };
    libmulticasts::for_each(together);
    peers::for_each(together);

    auto apart = [&](auto each) {
      using contender = typename decltype(each)::contender;
      benchmark::RegisterBenchmark(
          label("invoke one each from threads", contender::name(), count).c_str(),
          invoke_one_each<contender>, count)
          ->UseManualTime();
    };
    bare_loops::for_each(apart);
    libmulticasts::for_each(apart);
    peers::for_each(apart);
  }

  auto changed = [](auto each) {
    using contender = typename decltype(each)::contender;
    if constexpr (contender::is_thread_safe)
      benchmark::RegisterBenchmark(
          label("invoke while another adds and removes", contender::name(), delegates).c_str(),
          invoke_while_changed<contender>)
          ->UseRealTime();
  };
  libmulticasts::for_each(changed);
  peers::for_each(changed);
  return run_question(argc, argv, not_thread_safe());
}
