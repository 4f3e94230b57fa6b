// Loads two plug-ins twice, and checks that closing a plug-in unloads it. After the first plug-in
// has been unloaded, its file is replaced with another build, which must then be loaded.
#include "plugin.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace unload_tests {
namespace {

int failures = 0;
void check(bool is_so, const std::string &what) {
  if (is_so) return;
  std::printf("failed: %s\n", what.c_str());
  ++failures;
}

class plugin {
 public:
  explicit plugin(const char *path) : path_(path), handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    std::printf("failed: %s\n", dlerror());
    std::exit(1);
  }
  plugin(const plugin &) = delete;
  plugin &operator=(const plugin &) = delete;
  ~plugin() {
    function<void()>("plug_out")();
    check(dlclose(handle_) == 0, path_ + ": dlclose");
    check(dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr, path_ + ": is still mapped");
  }
  template <typename Type>
  Type *function(const char *name) const {
    void *const found = dlsym(handle_, name);
    if (found == nullptr) std::exit((std::printf("failed: %s\n", dlerror()), 1));
    return reinterpret_cast<Type *>(found);
  }
  int build() const { return function<int()>("plugin_build")(); }
  int plug_in(event &s, mcast::queue &q) const {
    return function<int(event &, mcast::queue &)>("plug_in")(s, q);
  }

 private:
  std::string path_;
  void *handle_;
};

/// Checks that the child of a fork can take one of the headers' locks. The child can take the lock
/// only if no thread holds the lock during fork().
bool fork_works(event &s) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const mcast::scoped_pause paused(s);
    _exit(s.invoke(1) == 0 ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct listener {
  void hear(int) { ++calls; }
  int calls = 0;
};

}  // namespace
}  // namespace unload_tests

// The arguments are three files: the first build of a plug-in, the second build, which replaces the
// first, and another plug-in.
int main(int, char **arguments) {
  using namespace unload_tests;
  const char *const first = arguments[1], *const newer = arguments[2], *const other = arguments[3];
  event s;
  mcast::queue q;
  listener own;
  s.add(own, &listener::hear);
  for (int round = 1; round <= 2; ++round) {
    const plugin stays(other);
    {
      const plugin goes(first);
      check(goes.build() == round, "a newer build is loaded");
      check(stays.plug_in(s, q) == 0, "the plug-in that stays works");
      check(goes.plug_in(s, q) == 0, "the plug-in that goes works");
      check(s.size() == 11, "each has added 5 delegates");
      s(1);
      check(fork_works(s), "a fork beside plug-ins");
      check(q.clear() == 2, "one delegate of each is called by the queue");
    }
    check(s.size() == 6, "what a plug-in adds goes with it");
    check(s.invoke(2) == 6, "the others are called");
    check(q.run() == 1, "the queue calls the other");
    check(fork_works(s), "a fork after a plug-in was unloaded");
    if (round == 1) check(std::rename(newer, first) == 0, "rename");
  }
  check(s.size() == 1 && s.remove(&listener::hear) == MULTICAST_OK, "the program's own delegate");
  check(own.calls == 4, "it was called in each round twice");
  std::puts(failures == 0 ? "plug-ins are unloaded" : "plug-ins are not unloaded");
  return failures == 0 ? 0 : 1;
}
