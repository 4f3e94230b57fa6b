// How long does it take to ask another thread and wait for its answer?

#include "askers.hpp"
#include "question.hpp"

/// Only one question is pending at any time, so for each question both threads go to sleep and are
/// woken.
template <class Asker> static void ask(benchmark::State &state) {
  Asker asker;
  uint64_t question = 0, wrong = 0;
  for (auto _ : state) {
    wrong += asker.ask(question) != answer(question);
    question++;
  }
  if (wrong > 0) state.SkipWithError("not every question was answered");
}

int main(int argc, char **argv) {
  auto register_one = [](auto each) {
    using asker = typename decltype(each)::contender;
    add_benchmark("ask and wait", asker::name(), 1, ask<asker>)->UseRealTime();
  };
  libmulticast_askers::for_each(register_one);
  peer_askers::for_each(register_one);
  return run_question(argc, argv);
}
