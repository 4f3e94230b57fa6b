#pragma once

/// A list of types. `for_each` calls a function for each of them.
template <class... Each> struct contenders {
  template <class Function> static void for_each(Function function) {
    (function(type<Each>()), ...);
  }
  template <class Type> struct type { using contender = Type; };
};

/// Expands to its arguments only if a header was found: WHEN(HAS_QT, qt_queue, ...).
#define WHEN(has, ...) WHEN_JOINED(WHEN_, WHEN_IS_ON(has))(__VA_ARGS__)
#define WHEN_0(...)
#define WHEN_1(...) __VA_ARGS__
#define WHEN_JOINED(a, b) WHEN_PASTED(a, b)
#define WHEN_PASTED(a, b) a##b
#define WHEN_IS_ON(has) WHEN_VALUE(has)
#define WHEN_VALUE(value) WHEN_SECOND(WHEN_ON_##value 1, 0, )
#define WHEN_SECOND(...) WHEN_SECOND_OF(__VA_ARGS__)
#define WHEN_SECOND_OF(first, second, ...) second
#define WHEN_ON_1 0,
