// How long does it take to pause and resume one of several delegates, to count or enumerate them,
// and to check whether a registration is valid?
//
// Each contender is measured for the operations that it supports.

#include "contenders.hpp"
#include "pausable_mutex.hpp"
#include "question.hpp"

/// Returns the token in the middle, because a linear search for it takes average time.
template <class Full> static auto &middle(Full &all) { return all.tokens[all.tokens.size() / 2]; }

// Each function below can be called only with contenders that support the operation.

template <class Full>
static auto pause_and_resume(Full &all) -> decltype(all.contender.pause_and_resume(middle(all))) {
  return all.contender.pause_and_resume(middle(all));
}
template <class Full> static auto count(Full &all) -> decltype(all.contender.count() == size_t()) {
  return all.contender.count() == all.counters.size();
}
template <class Full>
static auto is_valid(Full &all) -> decltype(all.contender.is_valid(middle(all))) {
  return all.contender.is_valid(middle(all));
}
template <class Full>
static auto enumerate(Full &all) -> decltype(all.contender.enumerate(middle(all)), true) {
  size_t passed = 0;
  all.contender.enumerate([&](uint64_t token) { passed += token != 0; });
  return passed == all.counters.size();
}

/// Measures one of the functions above with 1, 16 and 1000 delegates, if the contender supports the
/// operation. The function returns whether the contender has given the right answer.
template <class Contender, class Function>
static void measure(const char *name, Function function) {
  using full = filled<Contender>;
  if constexpr (std::is_invocable_v<Function, full &>) {
    for (const size_t count : {1, 16, 1000})
      add_benchmark(name, Contender::name(), int64_t(count), [=](benchmark::State &state) {
        full all(count);
        all.contender.invoke(1, nullptr, 0);
        bool is_right = true;
        for (auto _ : state) is_right &= function(all);
        if (!is_right) state.SkipWithError("the result is wrong");
      });
  }
}

#define FUNCTION(name) [](auto &all) -> decltype(name(all)) { return name(all); }

template <class Contender> static void register_all() {
  measure<Contender>("pause and resume", FUNCTION(pause_and_resume));
  measure<Contender>("count", FUNCTION(count));
  measure<Contender>("is valid", FUNCTION(is_valid));
  measure<Contender>("enumerate", FUNCTION(enumerate));
}

int main(int argc, char **argv) {
  auto each_contender = [](auto each) {
    register_all<typename decltype(each)::contender>();
  };
  libmulticasts::for_each(each_contender);
  peers::for_each(each_contender);
  register_all<pausable_mutex_contender>();
  return run_question(argc, argv, not_thread_safe());
}
