// A program in a project with strict warnings. The program includes the headers from an ordinary
// directory, not from a system directory. Neither the headers nor their macros may cause a warning.
#include <memory>
#include <string>
#include <vector>

#include <multicast.hpp>
#include <multicast_local.h>
#include <multicast_mqtt.h>
#include <multicast_nats.h>

#include <multicast/dispatcher.hpp>
#include <multicast/groups.hpp>
#include <multicast/next.hpp>
#include <multicast/slot.hpp>
#include <multicast/spy.hpp>
#include <multicast/watch.hpp>

namespace {

class window : public mcast::observer {
 public:
  window() = default;
  window(const window &) = delete;
  window &operator=(const window &) = delete;
  ~window() { stop_observing(); }
  void hear(int number, const std::string &text) {
    sum += number + static_cast<int>(text.size());
  }
  void hear_text(std::string text) { sum += static_cast<int>(text.size()); }
  int sum = 0;
};

enum class key { one, two };

int use_signals(mcast::queue &loop) {
  window w;
  const auto shared = std::make_shared<window>();
  mcast::signal<void(int, const std::string &)> s{mcast::replay(1)};
  s.add(w, &window::hear);
  s.add<&window::hear>(w, mcast::priority(2));
  s.add(shared, &window::hear, mcast::once);
  s.add(mcast::tracked([](int) {}, shared), mcast::on(loop) | mcast::label(MULTICAST_HERE));
  s.add(mcast::times(3, [](int, const std::string &) {}), mcast::at_front);
  s(1, "text");
  s.invoke(2, std::string("text"));
  s.invoke_and_wait_for(std::chrono::milliseconds(1), 3, "text");
  loop.run();
  s.remove(w, &window::hear);
  s.remove(&window::hear);
  s.remove_object(w);
  s.enumerate([](const multicast_registration &) { return true; });

  mcast::signal<void(std::string)> moved;
  moved.add(w, &window::hear_text, mcast::on(loop));
  moved(std::string("text"));
  mcast::spy seen(moved);
  moved.combine([](auto first, auto last) {
    for (; first != last; ++first) *first;
  }, "text");
  mcast::signal<void(std::string)> other;
  moved.add(other);
  other.connectable().add([](std::string &&) {});
  auto next = mcast::next(other);
  const mcast::scoped_pause paused(other);
  return w.sum + static_cast<int>(seen.size()) + (next.wait_for({}) ? 1 : 0);
}

int use_results() {
  mcast::signal<double(int)> r;
  r.add([](int number) { return 0.5 * number; });
  double total = r.fold(0.0, [](double sum, double each) { return sum + each; }, 2);
  for (const double each : r.results(2)) total += each;
  for (const double each : r.collect(1)) total += each;
  if (r.all(1) && r.any(1)) total += *r(1);
  return static_cast<int>(total);
}

int use_the_rest(mcast::queue &loop) {
  mcast::dispatcher<key, void(int)> keys;
  mcast::groups<int> groups;
  const mcast::slot<void(int)> slot = [](int) {};
  keys.add(key::one, slot, groups.in(1));
  keys(key::one, 1);
  mcast::watch_options how;
  how.slow = [](mcast::registration, const char *, std::chrono::nanoseconds) {};
  const mcast::watch watched(how);
  return loop.post_and_wait([] { return 1; }) + static_cast<int>(groups.remove(1));
}

/// Uses the macros of the C header.
int use_macros() {
  const multicast_add_options add = MULTICAST_ADD_OPTIONS_INIT;
  const multicast_registration registration = MULTICAST_REGISTRATION_INIT;
  const multicast_queue_options queue = MULTICAST_QUEUE_OPTIONS_INIT;
  const multicast_queue_stats queue_stats = MULTICAST_QUEUE_STATS_INIT;
  const multicast_invocation invocation = MULTICAST_INVOCATION_INIT;
  const multicast_outcome outcome = MULTICAST_OUTCOME_INIT;
  const multicast_create_options create = MULTICAST_CREATE_OPTIONS_INIT;
  const multicast_broadcaster_options broadcaster = MULTICAST_BROADCASTER_OPTIONS_INIT;
  const multicast_transport transport = MULTICAST_TRANSPORT_INIT;
  const multicast_watch watch = MULTICAST_WATCH_INIT;
  const multicast_token_stats token_stats = MULTICAST_TOKEN_STATS_INIT;
  const multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  const multicast_local_options local = MULTICAST_LOCAL_OPTIONS_INIT;
  const multicast_local_stats local_stats = MULTICAST_LOCAL_STATS_INIT;
  const multicast_mqtt_options mqtt = MULTICAST_MQTT_OPTIONS_INIT;
  const multicast_mqtt_stats mqtt_stats = MULTICAST_MQTT_STATS_INIT;
  const multicast_nats_options nats = MULTICAST_NATS_OPTIONS_INIT;
  const multicast_nats_stats nats_stats = MULTICAST_NATS_STATS_INIT;
  const multicast_token none = MULTICAST_NONE;
  const uint32_t sizes =
      add.struct_size + registration.struct_size + queue.struct_size + queue_stats.struct_size +
      invocation.struct_size + outcome.struct_size + create.struct_size + broadcaster.struct_size +
      transport.struct_size + watch.struct_size + token_stats.struct_size + allocator.struct_size +
      local.struct_size + local_stats.struct_size + mqtt.struct_size + mqtt_stats.struct_size +
      nats.struct_size + nats_stats.struct_size;
  return MULTICAST_VERSION >= 0x010000 && none.id == 0 ? static_cast<int>(sizes) : 0;
}

}  // namespace

int main() {
  mcast::queue loop;
  return use_signals(loop) + use_results() + use_the_rest(loop) + use_macros() > 0 ? 0 : 1;
}
