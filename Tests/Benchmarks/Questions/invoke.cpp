// How long does an invocation take with 0 to 65,536 delegates that are all the same function, and
// with 16 different functions? How long does it take to check whether there are listeners, if the
// contender has such a check?

#include <utility>

#include "contenders.hpp"
#include "question.hpp"

template <class Contender>
static void invoke(benchmark::State &state, size_t count, multicast_function function) {
  filled<Contender> full(count, function);
  uint64_t event = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(event);
    full.contender.invoke(uint32_t(event), nullptr, 0);
    benchmark::ClobberMemory();
  }
}

/// Functions that do the same work. The number keeps the compiler from merging them.
template <size_t Number>
static void work_numbered(void *context, uint32_t event, const void *payload, size_t size) {
  __asm__ volatile("# %0" : : "i"(Number));
  work(context, event, payload, size);
}

template <size_t... Numbers> static auto all_functions(std::index_sequence<Numbers...>) {
  return std::vector<multicast_function>{work_numbered<Numbers>...};
}

template <class Contender> static void invoke_functions(benchmark::State &state) {
  const auto functions = all_functions(std::make_index_sequence<16>());
  std::vector<uint64_t> counters(functions.size());
  Contender contender;
  for (size_t i = 0; i < functions.size(); ++i) contender.add(functions[i], &counters[i]);
  uint64_t event = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(event);
    contender.invoke(uint32_t(event), nullptr, 0);
    benchmark::ClobberMemory();
  }
}

template <class Contender, class = void> struct has_is_wanted : std::false_type {};
template <class Contender>
struct has_is_wanted<Contender, std::void_t<decltype(&Contender::is_wanted)>> : std::true_type {};

template <class Contender> static void ask(benchmark::State &state, size_t count) {
  filled<Contender> full(count, work_in_executable);
  bool is_wanted = false;
  for (auto _ : state) {
    benchmark::DoNotOptimize(is_wanted = full.contender.is_wanted());
    benchmark::ClobberMemory();
  }
  if (is_wanted != (count > 0)) state.SkipWithError("the answer is wrong");
}

int main(int argc, char **argv) {
  std::vector<size_t> counts = {0};
  for (size_t count = 1; count <= 65536; count *= 2) counts.push_back(count);

  for (size_t count : counts) {
    auto in_executable = [&](auto each) {
      using contender = typename decltype(each)::contender;
      add_benchmark("invoke", contender::name(), int64_t(count),
                    invoke<contender>, count, work_in_executable);
    };
    bare_loops::for_each(in_executable);
    libmulticasts::for_each(in_executable);
    peers::for_each(in_executable);

    auto in_library = [&](auto each) {
      using contender = typename decltype(each)::contender;
      add_benchmark("invoke delegates of a library", contender::name(), int64_t(count),
                    invoke<contender>, count, work_in_library);
    };
    bare_loops::for_each(in_library);
    libmulticasts::for_each(in_library);
  }
  auto different_functions = [](auto each) {
    using contender = typename decltype(each)::contender;
    add_benchmark("invoke different functions", contender::name(), 16,
                  invoke_functions<contender>);
  };
  bare_loops::for_each(different_functions);
  libmulticasts::for_each(different_functions);
  auto ask_each = [](auto each) {
    using contender = typename decltype(each)::contender;
    if constexpr (has_is_wanted<contender>::value)
      for (size_t count : {0, 1})
        add_benchmark("ask whether anybody listens", contender::name(), int64_t(count),
                      ask<contender>, count);
  };
  libmulticasts::for_each(ask_each);
  peers::for_each(ask_each);
  return run_question(argc, argv, not_thread_safe());
}
