// A plugin that hides its symbols.
#include "plugin.hpp"

namespace plugin_tests {
namespace {

std::thread::id post_and_wait(mcast::queue &queue) {
  return queue.post_and_wait([] { return std::this_thread::get_id(); });
}
mcast::scoped_pause pause(const event &paused) { return mcast::scoped_pause(paused); }
mcast::watch watch(const event &watched) { return mcast::watch(watched); }
mcast::registration add(event &to, listener &what) { return to.add(what, &listener::hear); }
mcast::registration add_shared(event &to, const std::shared_ptr<listener> &what) {
  return to.add(what, &listener::hear);
}
void fail() { event().add(static_cast<void (*)(int)>(nullptr)); }

}  // namespace
}  // namespace plugin_tests

extern "C" __attribute__((visibility("default"))) const plugin_tests::functions plugin_functions;
const plugin_tests::functions plugin_functions = {
    plugin_tests::post_and_wait, plugin_tests::pause,      plugin_tests::watch,
    plugin_tests::add,           plugin_tests::add_shared, mcast::set_exception_handler,
    plugin_tests::fail};
