// Do threads that invoke slow each other down, and does a thread that adds and removes delegates
// slow down a thread that invokes them?
//
// This program is compiled with WORK_READS (see work.h). If delegates wrote to their counters,
// cache lines would move between the threads, no matter which library is used.

#include "contenders.hpp"
#include "question.hpp"
#include "repeating_thread.hpp"

static constexpr size_t delegates = 16;

template <class Contender> static void invoke(Contender &contender) {
  contender.invoke(1, nullptr, 0);
  benchmark::ClobberMemory();
}

// ---- Threads that invoke ------------------------------------------------------------------------

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

// ---- A thread that adds and removes -------------------------------------------------------------

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
  const uint64_t changes = 2 * (changing.rounds() - before);  // each round adds and removes
  state.counters["changes_per_second"] =
      benchmark::Counter(double(changes), benchmark::Counter::kIsRate);
}

int main(int argc, char **argv) {
  for (int count : {1, 2, 4}) {
    auto together = [&](auto each) {
      using contender = typename decltype(each)::contender;
      if constexpr (contender::is_thread_safe)
        add_benchmark("invoke one multicast from threads", contender::name(), count,
                      invoke_one<contender>, count)->UseManualTime();
    };
    libmulticasts::for_each(together);
    peers::for_each(together);

    auto apart = [&](auto each) {
      using contender = typename decltype(each)::contender;
      add_benchmark("invoke one each from threads", contender::name(), count,
                    invoke_one_each<contender>, count)->UseManualTime();
    };
    bare_loops::for_each(apart);
    libmulticasts::for_each(apart);
    peers::for_each(apart);
  }

  auto changed = [](auto each) {
    using contender = typename decltype(each)::contender;
    if constexpr (contender::is_thread_safe)
      add_benchmark("invoke while another adds and removes", contender::name(), delegates,
                    invoke_while_changed<contender>)->UseRealTime();
  };
  libmulticasts::for_each(changed);
  peers::for_each(changed);
  return run_question(argc, argv, not_thread_safe());
}
