/// A GAsyncQueue of messages that are allocated with g_malloc(). They are popped one by one, as
/// in GLib's documentation.
#pragma once

#include <glib.h>

#include <cstring>
#include <string>

#include "receiver.hpp"

struct glib_queue_contender {
  static std::string name() { return "GAsyncQueue"; }
  static constexpr bool is_bounded = false;

  glib_queue_contender(receiver &to, uint32_t) : to(to) {}
  ~glib_queue_contender() { g_async_queue_unref(queue); }
  glib_queue_contender(const glib_queue_contender &) = delete;

  void push(uint32_t event, const void *payload, size_t size) {
    auto *made = static_cast<message *>(g_malloc(sizeof(message) + size));
    made->event = event;
    made->size = size;
    std::memcpy(made + 1, payload, size);
    g_async_queue_push(queue, made);
  }
  void run_one() {
    auto *popped = static_cast<message *>(g_async_queue_pop(queue));
    to.receive(popped->event, popped + 1, popped->size);
    g_free(popped);
  }

  void start() {}
  void deliver() {
    while (!to.is_finished()) run_one();
  }

 private:
  struct message {
    uint32_t event;
    size_t size;
  };

  receiver &to;
  GAsyncQueue *queue = g_async_queue_new();
};
