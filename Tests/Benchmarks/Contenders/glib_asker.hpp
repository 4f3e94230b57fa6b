/// An asker whose thread runs a GMainLoop. `ask` calls g_main_context_invoke(), which does not wait
/// for the answer, so `ask` then waits on a condition variable.
#pragma once

#include <glib.h>

#include <string>
#include <thread>

#include "answer.hpp"

struct glib_asker {
  static std::string name() { return "GMainContext, GCond"; }

  glib_asker() {
    // Wait until the loop runs. Before that, g_main_context_invoke() calls functions on this
    // thread.
    request begun{};
    GSource *source = g_idle_source_new();
    g_source_set_callback(source, receive, &begun, nullptr);
    g_source_attach(source, context);
    g_source_unref(source);
    thread = std::thread([this] { g_main_loop_run(loop); });
    begun.wait();
  }
  ~glib_asker() {
    g_main_loop_quit(loop);
    thread.join();
    g_main_loop_unref(loop);
    g_main_context_unref(context);
  }
  glib_asker(const glib_asker &) = delete;

  uint64_t ask(uint64_t question) {
    request made(question);
    g_main_context_invoke(context, receive, &made);
    return made.wait();
  }

 private:
  struct request {
    explicit request(uint64_t question = 0) : question(question) {
      g_mutex_init(&lock);
      g_cond_init(&answered);
    }
    ~request() {
      g_cond_clear(&answered);
      g_mutex_clear(&lock);
    }
    uint64_t wait() {
      g_mutex_lock(&lock);
      while (!is_answered) g_cond_wait(&answered, &lock);
      g_mutex_unlock(&lock);
      return result;
    }

    uint64_t question, result = 0;
    bool is_answered = false;
    GMutex lock;
    GCond answered;
  };
  static gboolean receive(void *data) {
    auto *asked = static_cast<request *>(data);
    g_mutex_lock(&asked->lock);
    asked->result = answer(asked->question);
    asked->is_answered = true;
    g_cond_signal(&asked->answered);
    g_mutex_unlock(&asked->lock);
    return G_SOURCE_REMOVE;
  }

  GMainContext *context = g_main_context_new();
  GMainLoop *loop = g_main_loop_new(context, FALSE);
  std::thread thread;
};
