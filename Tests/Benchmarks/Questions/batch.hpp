/// Contenders to be filled with so many delegates each: small ones by the hundred, so that reading
/// the clock before and after does not count.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

#include "question.hpp"

template <class Contender> struct batch {
  using token = typename Contender::token;

  /// Longer than this for filling or emptying once, and a contender goes no further.
  static constexpr std::chrono::seconds patience{2};

  const size_t count;
  std::vector<Contender> contenders;
  std::vector<uint64_t> counters;
  std::vector<token> tokens;

  explicit batch(size_t count) : count(count), contenders(copies(count)), counters(count) {
    tokens.resize(copies(count) * count);  // has the system give the memory now
    tokens.clear();
  }

  /// How many contenders have so many delegates each.
  static size_t copies(size_t count) { return 1 + 1023 / count; }

  /// Adds all delegates; false where patience has ended.
  bool fill() {
    return repeat([&](Contender &contender, size_t, size_t place) {
      tokens.push_back(contender.add(work_in_executable, &counters[place]));
    });
  }

  /// Invokes each, on this thread and no other, as is usual.
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

  /// Removes by token, in the order in which those are now; false where patience has ended.
  bool empty() {
    return repeat([&](Contender &contender, size_t i, size_t) { contender.remove(tokens[i]); });
  }

 private:
  template <class Function> bool repeat(Function function) {
    const auto end = std::chrono::steady_clock::now() + patience;
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
