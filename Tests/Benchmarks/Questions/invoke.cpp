// How long does an invocation take with 0 to 65,536 delegates? How long does it take to check
// whether there are listeners, if the contender has such a check?

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
