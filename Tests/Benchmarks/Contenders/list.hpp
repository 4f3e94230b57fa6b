#pragma once

/// A list of types, with a call for each of them.
template <class... Each> struct contenders {
  template <class Function> static void for_each(Function function) {
    (function(type<Each>()), ...);
  }
  template <class... More> using with = contenders<Each..., More...>;
  template <class Type> struct type { using contender = Type; };
};
