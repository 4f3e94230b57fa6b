/// A batch of contenders, each filled with `count` delegates. If `count` is small, a batch contains
/// hundreds of contenders, so that the cost of reading the clock is negligible.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

#include "contenders.hpp"
#include "question.hpp"

template <class Contender> struct batch {
  using token = typename Contender::token;

  /// The time limit for filling or emptying all contenders once. After a contender has exceeded the
  /// limit, it is not measured with larger counts.
  static constexpr std::chrono::seconds time_limit{2};

  const size_t count;
  std::vector<Contender> contenders;
  std::vector<uint64_t> counters;
  std::vector<token> tokens;

  explicit batch(size_t count) : count(count), contenders(copies(count)), counters(count) {
    tokens.resize(copies(count) * count);  // makes the system provide the memory now
    tokens.clear();
  }

  /// Returns the number of contenders.
  static size_t copies(size_t count) { return 1 + 1023 / count; }

  /// Adds all delegates. Returns false if the time limit is exceeded.
  bool fill() {
    return repeat([&](Contender &contender, size_t, size_t place) {
      tokens.push_back(contender.add(work_in_executable, &counters[place]));
    });
  }

  /// Invokes each contender once. As in most programs, only one thread ever invokes it.
  void invoke() {
    for (auto &contender : contenders) contender.invoke(1, nullptr, 0);
  }

  void shuffle() {
    std::mt19937 random(1);
    for (size_t i = 0; i < tokens.size(); i += count)
      std::shuffle(tokens.begin() + i, tokens.begin() + i + count, random);
  }
  void reverse() {
    for (size_t i = 0; i < tokens.size(); i += count)
      std::reverse(tokens.begin() + i, tokens.begin() + i + count);
  }

  /// Removes delegates by token, in the tokens' current order. Returns false if the time limit is
  /// exceeded.
  bool empty() {
    return repeat([&](Contender &contender, size_t i, size_t) { contender.remove(tokens[i]); });
  }

 private:
  template <class Function> bool repeat(Function function) {
    const auto end = std::chrono::steady_clock::now() + time_limit;
    size_t i = 0;
    for (auto &contender : contenders) {
      for (size_t place = 0; place < count; place++, i++) {
        function(contender, i, place);
        if (i % 256 == 255 && std::chrono::steady_clock::now() > end) return false;
      }
    }
    return true;
  }
};
