// Tests delegates that take fewer arguments than the signal passes, or different arguments.
#include "test.hpp"

namespace adaptations_tests {

std::string text;
void all(int n, const std::string &s) { text += std::to_string(n) + s; }
void first(int n) { text += std::to_string(n); }
void none() { text += '-'; }
struct object {
  void none() const { text += 'n'; }
  void first(int n) { text += std::to_string(n); }
  void with(mcast::registration r, int n) {
    text += (r.is_valid() ? "r" : "?") + std::to_string(n);
  }
  void only(mcast::registration r) { static_cast<void>(r.remove()); }
};
std::string called(const mcast::signal<void(int, const std::string &)> &s) {
  text.clear();
  s(1, "a");
  return text;
}

TEST_CASE("a delegate may take fewer arguments than the signal has") {
  mcast::signal<void(int, const std::string &)> s;
  object o;
  const auto shared = std::make_shared<object>();
  s.add(all);
  s.add(first);
  s.add(none);
  s.add([] { text += 'l'; });
  s.add([](long n) { text += std::to_string(n + 1); });
  s.add(o, &object::none);
  s.add<&object::first>(o);
  s.add(shared, &object::first);
  s.add(mcast::tracked([](int n) { text += std::to_string(n + 2); }, shared));
  CHECK(called(s) == "1a1-l2n113");
  CHECK(s.remove(first).count() == 1);
  CHECK(s.remove(none).count() == 1);
  CHECK(s.remove(o, &object::none).count() == 1);
  CHECK(called(s) == "1al2113");
}

TEST_CASE("a delegate with fewer arguments: queues and results") {
  mcast::signal<void(std::string, int)> s;
  mcast::queue q;
  text.clear();
  s.add([](const std::string &given) { text += given; }, mcast::on(q));
  s("queued", 1);
  CHECK(text.empty());
  q.run();
  CHECK(text == "queued");
  mcast::signal<int(int, int)> asked;
  asked.add([] { return 1; });
  asked.add([](int a) { return a; });
  asked.add([](int a, int b) { return a + b; });
  CHECK(asked.collect(2, 3) == std::vector<int>{1, 2, 5});
}

TEST_CASE("a delegate that can take all arguments gets all") {
  struct both {
    void operator()() { text += '0'; }
    void operator()(int) { text += '1'; }
    void operator()(int, const std::string &) { text += '2'; }
  };
  mcast::signal<void(int, const std::string &)> s;
  s.add(both());
  s.add([](auto &&...given) { text += std::to_string(sizeof...(given)); });
  CHECK(called(s) == "22");
}

TEST_CASE("a delegate that takes T && gets a copy of its own") {
  mcast::signal<void(std::string, int)> s;
  mcast::queue q;
  std::vector<std::string> taken;
  const auto take = [&](std::string &&given) { taken.push_back(std::move(given)); };
  s.add(take);
  s.add(take, mcast::on(q));
  s.add([&](const std::string &given) { taken.push_back(given); });
  s.add(take);
  const std::string kept = "a text that is not short";
  s(kept, 1);
  q.run();
  CHECK(taken == std::vector<std::string>{kept, kept, kept, kept});
  counted::reset();
  mcast::signal<void(counted)> given;
  given.add([](counted &&own) { const counted moved(std::move(own)); });
  given.add([](const counted &shared) { CHECK(shared.number == 3); });
  given(counted(3));
  CHECK(counted::copies == 1);
}

TEST_CASE("a method may get its registration first") {
  mcast::signal<void(int, const std::string &)> s;
  object o;
  const auto shared = std::make_shared<object>();
  s.add_extended(o, &object::with);
  s.add_extended(shared, &object::with, mcast::priority(1));
  s.add_extended(o, [](mcast::registration r) { text += r.is_valid() ? 'l' : '?'; });
  CHECK(called(s) == "r1r1l");
  CHECK(s.remove(o, &object::with).count() == 1);
  CHECK(s.remove(shared, &object::with).count() == 1);
  CHECK(called(s) == "l");
  CHECK(s.remove_object(o) == 1);
  s.add_extended(o, &object::only);
  CHECK(called(s) == "");
  CHECK(s.empty());
  {
    const auto gone = std::make_shared<object>();
    s.add_extended(gone, &object::with);
    CHECK(s.size() == 1);
  }
  CHECK(s.empty());
}

void with_registration(mcast::registration, int) { text += 'x'; }

TEST_CASE("an extended delegate is removed as any other") {
  mcast::signal<void(int, const std::string &)> s;
  s.add_extended(with_registration);
  s.add_extended(with_registration, mcast::unique);
  const auto empty = [](mcast::registration, int) { text += 'e'; };
  s.add_extended(empty);
  CHECK(called(s) == "xe");
  CHECK(s.remove(empty).count() == 1);
  CHECK(s.remove(with_registration).count() == 1);
  CHECK(s.empty());
}

}  // namespace adaptations_tests
