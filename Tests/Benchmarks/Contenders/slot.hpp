/// The delegate for C++ peers. The compiler inlines `work` instead of calling it through a pointer.
#pragma once

#include "work.h"

struct slot {
  void *context;
  void operator()(uint32_t event, const void *payload, size_t size) const {
    work(context, event, payload, size);
  }
  friend bool operator==(const slot &a, const slot &b) { return a.context == b.context; }
};
