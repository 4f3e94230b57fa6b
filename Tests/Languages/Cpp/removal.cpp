// Tests removal by function, method and object, equal delegates, and the order of delegates.
#include <cstring>

#include "test.hpp"

namespace removal_tests {
std::string text;
void a() { text += 'a'; }
void b() { text += 'b'; }
struct object {
  char name = 'o';
  void hear() { text += name; }
  void tell() const { text += 't'; }
};
std::string called(const mcast::signal<void()> &s) {
  text.clear();
  s();
  return text;
}

TEST_CASE("functions are removed by themselves") {
  mcast::signal<void()> s;
  mcast::queue q;
  CHECK(s.remove(a) == MULTICAST_ERROR_NOT_FOUND);
  s.add(a);
  s.add(b);
  s.add(&a, mcast::priority(1));
  s.add(a, mcast::on(q));
  CHECK(s.remove(a) == MULTICAST_OK);
  CHECK(called(s) == "b");
  CHECK(s.remove(a) == MULTICAST_ERROR_NOT_FOUND);
  CHECK(s.remove(&b) == MULTICAST_OK);
  CHECK(s.empty());
}

TEST_CASE("a method is removed from all its objects") {
  struct derived : object {};
  mcast::signal<void()> s, other;
  object x, y;
  derived z;
  const auto shared = std::make_shared<object>();
  s.add(x, &object::hear);
  s.add(x, &object::hear);
  s.add(&y, &object::hear);
  s.add(z, &object::hear);
  s.add(shared, &object::hear);
  s.add(x, &object::tell);
  other.add(x, &object::hear);
  const mcast::removal all = s.remove(&object::hear);
  CHECK(all.count() == 5);
  CHECK(all == MULTICAST_OK);
  CHECK(called(s) == "t");
  CHECK(called(other) == "o");
  CHECK_FALSE(s.remove(&object::hear));
  CHECK_FALSE(mcast::signal<void()>().remove(&object::hear));
}

TEST_CASE("a callable is removed with its object") {
  mcast::signal<void()> s;
  object x, y;
  const auto shared = std::make_shared<object>();
  const auto small = [] { text += 's'; };
  s.add(x, a);
  s.add(x, a);
  s.add(y, a);
  s.add(shared, a);
  s.add(shared, small);
  s.add(x, small);
  CHECK(called(s) == "aaaass");
  CHECK(s.remove(x, a).count() == 2);
  CHECK_FALSE(s.remove(x, a));
  CHECK(s.remove(shared, a).count() == 1);
  CHECK(s.remove(std::weak_ptr<object>(shared), small).count() == 1);
  CHECK(s.remove(x, small).count() == 1);
  CHECK_FALSE(s.remove(b));
  CHECK(called(s) == "a");
  CHECK(s.remove_object(y) == 1);
  s.add(x, a, mcast::unique);
  s.add(x, a, mcast::unique);
  CHECK(s.size() == 1);
}

TEST_CASE("callables with a state are different, with one object too") {
  mcast::signal<void()> s;
  object x;
  const auto counting = [n = 0]() mutable { text += std::to_string(++n); };
  s.add(x, counting);
  s.add(x, counting);
  CHECK(called(s) == "11");
  CHECK(called(s) == "22");
  CHECK(s.remove_object(x) == 2);
}

TEST_CASE("a functor without data is removed by an equal one") {
  struct functor {
    void operator()() { text += 'f'; }
  };
  mcast::signal<void()> s;
  s.add(functor());
  CHECK(called(s) == "f");
  CHECK(s.remove(functor()).count() == 1);
  CHECK(s.empty());
}

TEST_CASE("a removal says how many, and is true if there was one") {
  mcast::signal<void()> s;
  mcast::queue q;
  CHECK_FALSE(s.remove(a));
  for (int i = 0; i < 3; ++i) {
    s.add(a);
    s.add(b);
    s.add(a, mcast::on(q));
  }
  const size_t count = s.remove(a);
  CHECK(count == 6);
  CHECK(s.size() == 3);
  const mcast::removal once = s.remove(b);
  CHECK(once);
  CHECK(once.count() == 3);
  CHECK(once == MULTICAST_OK);
  CHECK(once != MULTICAST_PENDING);
  CHECK(once.status() == MULTICAST_OK);
  const mcast::removal none = s.remove(b);
  CHECK_FALSE(none);
  CHECK(none.count() == 0);
  CHECK(none == MULTICAST_ERROR_NOT_FOUND);
  static_assert(!std::is_convertible_v<mcast::removal, multicast_status>);
  static_assert(!std::is_convertible_v<mcast::removal, bool>);
}

mcast::signal<void()> *own;
mcast::removal inside(MULTICAST_OK, 0);
void remove_itself() { inside = own->remove(remove_itself); }

TEST_CASE("a removal inside a call is pending, and counts") {
  mcast::signal<void()> s;
  own = &s;
  s.add(remove_itself);
  s.add(remove_itself);
  s();
  CHECK(inside.count() == 2);
  CHECK(inside == MULTICAST_PENDING);
  CHECK(s.empty());
}

TEST_CASE("small lambdas are removed by themselves") {
  mcast::signal<void()> s;
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  const auto none = [] {};
  s.add(count);
  s.add(none);
  CHECK(s.remove(count) == MULTICAST_OK);
  CHECK(s.remove(none) == MULTICAST_OK);
  CHECK(s.empty());
}

TEST_CASE("methods are removed by method, by object, at compile time") {
  mcast::signal<void()> s;
  object x, y;
  y.name = 'y';
  s.add(x, &object::hear);
  s.add(&x, &object::tell);
  s.add(y, &object::hear);
  s.add<&object::hear>(x);
  s.add(x, [] { text += 'l'; });
  CHECK(called(s) == "otyol");
  CHECK(s.remove(x, &object::hear) == MULTICAST_OK);
  CHECK(called(s) == "tyol");
  CHECK(s.remove(x, &object::hear) == MULTICAST_ERROR_NOT_FOUND);
  CHECK(s.remove<&object::hear>(&x) == MULTICAST_OK);
  CHECK(called(s) == "tyl");
  s.add<&object::hear>(x);
  CHECK(s.remove_object(x) == 3);
  CHECK(called(s) == "y");
  CHECK(s.remove_object(&y) == 1);
  CHECK(s.remove_object(&y) == 0);
}

TEST_CASE("a removal by object concerns its own signal alone") {
  mcast::signal<void()> s, other;
  object x;
  s.add(x, &object::hear);
  other.add(x, &object::hear);
  CHECK(s.remove_object(x) == 1);
  CHECK(called(other) == "o");
}

TEST_CASE("methods of shared objects are removed likewise") {
  mcast::signal<void()> s;
  const auto x = std::make_shared<object>();
  const std::weak_ptr<object> weak = x;
  s.add(x, &object::hear);
  s.add(weak, &object::tell);
  s.add(x, [] { text += 'l'; });
  CHECK(s.remove(weak, &object::hear) == MULTICAST_OK);
  CHECK(called(s) == "tl");
  CHECK(s.remove_object(x) == 2);
}

TEST_CASE("equal delegates are unique, queued or not") {
  mcast::signal<void()> s;
  mcast::queue q;
  object x;
  int n = 0;
  const auto lambda = [&n] { ++n; };
  const auto shared = std::make_shared<object>();
  for (int i = 0; i < 2; ++i) {
    for (const mcast::options &how : {mcast::unique, mcast::unique | mcast::priority(1)}) {
      s.add(a, how);
      s.add(x, &object::hear, how);
      s.add<&object::tell>(x, how);
      s.add(lambda, how);
      s.add(shared, &object::hear, how);
    }
    CHECK(s.size() == 5);
  }
  s.add(a, mcast::unique | mcast::on(q));
  s.add(x, &object::hear, mcast::on(q) | mcast::unique);
  CHECK(s.size() == 5);
  s.clear();
  s.add(a);
  s.add(b);
  s.add(a, mcast::unique);
  CHECK(called(s) == "ba");
}

TEST_CASE("what is added at the front is called first") {
  mcast::signal<void()> s;
  s.add([] { text += '1'; }, mcast::priority(1000));
  s.add([] { text += '2'; }, mcast::at_front);
  s.add([] { text += '3'; }, mcast::at_front);
  s.add([] { text += '4'; });
  CHECK(called(s) == "3214");
}

TEST_CASE("a context that methods share is freed with the last of them") {
  const auto witness = std::make_shared<int>();
  mcast::signal<void()> s, other;
  object x;
  s.add(x, [witness] {});
  other.add(x, [witness] {});
  CHECK(witness.use_count() == 3);
  s.remove_object(x);
  CHECK(witness.use_count() == 2);
  other.clear();
  CHECK(witness.use_count() == 1);
}

TEST_CASE("threads may add and remove the same methods at once") {
  mcast::signal<void()> s;
  struct {
    std::atomic<int> calls{0};
    void hear() { ++calls; }
  } x;
  using type = decltype(x);
  const auto body = [&] {
    for (int i = 0; i < 500; ++i) {
      s.add(x, &type::hear);
      s();
      s.remove(x, &type::hear);
    }
  };
  std::thread one(body), two(body);
  one.join();
  two.join();
  s.remove_object(x);
  CHECK(s.empty());
}

TEST_CASE("what is not there is not removed") {
  mcast::signal<void()> s;
  object o;
  CHECK(s.remove_object(o) == 0);
  s.add(o, &object::hear);
  CHECK(s.remove_object(static_cast<object *>(nullptr)) == 0);
  CHECK(s.remove_object(std::weak_ptr<object>()) == 0);
  CHECK(s.remove_object(&o) == 1);
}

TEST_CASE("an object may have many callables, in several signals") {
  mcast::signal<void()> s, other;
  std::vector<object> all(3);
  std::vector<mcast::registration> first;
  for (int i = 0; i < 100; ++i) {
    for (object &each : all) {
      const mcast::registration r = s.add(each, [i, &each] { text += i < 0 ? '-' : each.name; });
      if (&each == all.data()) first.push_back(r);
      other.add(each, [i] { text += i < 0 ? '-' : '.'; });
    }
  }
  for (size_t i = 0; i < first.size(); i += 2) CHECK(first[i].remove() == MULTICAST_OK);
  CHECK(s.remove_object(all[0]) == 50);
  CHECK(s.remove_object(all[1]) == 100);
  CHECK(s.size() == 100);
  CHECK(other.size() == 300);
  CHECK(called(s) == std::string(100, 'o'));
}

TEST_CASE("callables of one object are different delegates") {
  mcast::signal<void()> s;
  object o;
  for (const char name : {'x', 'y'}) s.add(o, [name] { text += name; });
  CHECK(called(s) == "xy");
  CHECK(s.remove_object(o) == 2);
  CHECK(s.empty());
}

mcast::signal<void()> *ending;
mcast::removal ended(MULTICAST_OK, 0);
void ends() { ended = ending->remove(ends); }

TEST_CASE("a function that removes itself is told that it runs") {
  mcast::signal<void()> s;
  mcast::queue q;
  ending = &s;
  s.add(ends);
  s.add(ends, mcast::on(q));
  s();
  CHECK(ended == MULTICAST_PENDING);
  CHECK(s.empty());
  CHECK(q.run() == 0);
}

// A struct with padding bytes.
template <typename Number>
struct padded {
  char name;
  Number number;
  constexpr padded(char c, Number n) : name(c), number(n) {}
  void operator()() const { text += name; }
};

template <typename Number>
void remove_padded() {
  using function = padded<Number>;
  static_assert(sizeof(function) <= sizeof(void *));
  mcast::signal<void()> s;
  alignas(function) unsigned char first[sizeof(function)], second[sizeof(function)];
  std::memset(first, 0x55, sizeof first);
  std::memset(second, 0xaa, sizeof second);
  s.add(*new (first) function('x', 2));
  s.add(*new (second) function('x', 2), mcast::unique);
  CHECK(called(s) == "x");
  s.add(function('x', 3));
  s.add(function('y', 2));
  CHECK(s.remove(*new (first) function('x', 2)) == MULTICAST_OK);
  CHECK(called(s) == "xy");
}

TEST_CASE("small callables are equal if their values are") {
  remove_padded<int>();
  remove_padded<short>();
  remove_padded<float>();
  mcast::signal<void()> s;
  s.add([a = true, b = 1.5f] { text += a ? std::to_string(b) : ""; });
  CHECK(called(s) == "1.500000");
}

TEST_CASE("a method may come before its object") {
  mcast::signal<void()> s;
  mcast::queue q;
  object x;
  const auto shared = std::make_shared<object>();
  s.add(&object::hear, &x);
  s.add(&object::tell, std::as_const(x));
  s.add(&object::hear, shared, mcast::priority(1) | mcast::on(q));
  CHECK(called(s) == "ot");
  CHECK(q.run() == 1);
  CHECK(s.remove(&object::hear, x) == MULTICAST_OK);
  CHECK(s.remove(&object::hear, shared) == MULTICAST_OK);
  CHECK(called(s) == "t");
  mcast::signal<void(object *)> of_objects;  // the object is an argument
  of_objects.add(&object::hear, mcast::once);
  text.clear();
  of_objects(&x);
  CHECK(text == "o");
}

// Callables that behave in the same way but have different sizes.
template <size_t more>
struct stateful {
  char data[more] = {};
  mutable int calls = 0;
  int operator()() { return 100 + ++calls; }
  int operator()() const { return 200; }
};
template <size_t more>
struct counting {
  char data[more] = {};
  mutable int calls = 0;
  int operator()() const { return ++calls; }
};

template <typename F>
std::vector<int> two_calls() {
  mcast::signal<int()> s;
  s.add(F());
  return {s().value_or(0), s().value_or(0)};
}

TEST_CASE("small callables keep their state, as large ones do") {
  CHECK(two_calls<stateful<1>>() == std::vector<int>{101, 102});
  CHECK(two_calls<stateful<64>>() == std::vector<int>{101, 102});
  CHECK(two_calls<counting<1>>() == std::vector<int>{1, 2});
  CHECK(two_calls<counting<64>>() == std::vector<int>{1, 2});
  struct empty {
    int operator()() { return 1; }
    int operator()() const { return 2; }
  };
  CHECK(two_calls<empty>() == std::vector<int>{1, 1});
  counting<1> outside;
  mcast::signal<int()> s;
  s.add(std::ref(outside));
  s.add([n = 10]() mutable { return ++n; });
  CHECK(s.collect() == std::vector<int>{1, 11});
  CHECK(s.collect() == std::vector<int>{2, 12});
  CHECK(s.remove(std::ref(outside)) == MULTICAST_OK);
}

TEST_CASE("delegates of volatile objects are added and removed") {
  struct device {
    volatile int count = 0;
    void hear() volatile { count = count + 1; }
    void tell() const volatile {}
  };
  mcast::signal<void()> s;
  volatile device d;
  const volatile device &view = d;
  s.add(d, &device::hear);
  s.add(&d, &device::hear);
  s.add<&device::hear>(d);
  s.add<&device::tell>(&view);
  s.add(view, [] { text += 'v'; });
  s.add(view, &device::tell);
  CHECK(called(s) == "v");
  CHECK(d.count == 3);
  CHECK(s.remove(d, &device::hear) == MULTICAST_OK);
  CHECK(s.remove<&device::hear>(d) == MULTICAST_OK);
  CHECK(s.size() == 3);
  CHECK(s.remove_object(&view) == 3);
}

TEST_CASE("an object may be given by std::ref(), which need not stay") {
  mcast::signal<void()> s;
  object x, other;
  other.name = '-';
  auto passing = std::ref(x);
  s.add(passing, &object::hear);
  s.add<&object::hear>(passing);
  passing = other;
  s.add(std::cref(x), &object::tell);
  CHECK(called(s) == "oot");
  CHECK(s.remove(std::ref(x), &object::hear) == MULTICAST_OK);
  CHECK(s.remove<&object::hear>(x) == MULTICAST_OK);
  CHECK(s.remove_object(std::cref(x)) == 1);
}

TEST_CASE("a callable may hide its operator new") {
  struct hidden {
    std::string name;
    static void *operator new(size_t) = delete;
    static void operator delete(void *) = delete;
    void operator()() const { text += name; }
  };
  mcast::signal<void()> s;
  s.add(hidden{"a callable that is larger than a pointer"});
  CHECK(called(s) == "a callable that is larger than a pointer");
}

TEST_CASE("an object with data and == is found by an equal one") {
  struct adder {
    int by;
    int *sum;
    void operator()(int) { *sum += by; }
    bool operator==(const adder &other) const { return by == other.by && sum == other.sum; }
  };
  int sum = 0, other = 0;
  mcast::signal<void(int)> s;
  s.add(adder{1, &sum});
  s.add(adder{2, &sum}, mcast::priority(1));
  s.add(adder{1, &sum}, mcast::label("the second"));
  s.add(adder{1, &other});
  CHECK(s.contains(adder{2, &sum}));
  CHECK_FALSE(s.contains(adder{3, &sum}));
  const mcast::removal two = s.remove(adder{1, &sum});
  CHECK(two.count() == 2);
  CHECK(two == MULTICAST_OK);
  CHECK(s.remove(adder{1, &sum}) == MULTICAST_ERROR_NOT_FOUND);
  s(0);
  CHECK(sum == 2);
  CHECK(other == 1);
  CHECK(mcast::signal<void(int)>().remove(adder{1, &sum}) == MULTICAST_ERROR_NOT_FOUND);
}

TEST_CASE("an object with == may get its registration, or be queued") {
  struct remover {
    long key[2];
    void operator()(mcast::registration r, int) const { r.remove(); }
    bool operator==(const remover &other) const { return key[0] == other.key[0]; }
  };
  mcast::signal<void(int)> s;
  mcast::queue q;
  s.add_extended(remover{{1, 2}});
  s.add_extended(remover{{2, 2}}, mcast::on(q));
  CHECK(s.remove(remover{{2, 5}}) == MULTICAST_OK);
  CHECK(s.size() == 1);
  CHECK(s.remove(remover{{1, 7}}).count() == 1);
}

TEST_CASE("a callable with a large alignment goes with its object") {
  struct alignas(64) wide {
    long number;
    void operator()(int) const {}
  };
  mcast::signal<void(int)> s;
  int object = 0;
  s.add(object, wide{1});
  CHECK(s.remove_object(object) == 1);
  s.add(object, wide{2}).remove();
  CHECK(s.empty());
}

TEST_CASE("what == throws reaches the one that removes") {
  struct thrower {
    long data[2];
    void operator()() const {}
    bool operator==(const thrower &) const { throw std::runtime_error("=="); }
  };
  mcast::signal<void()> s;
  s.add(thrower{});
  CHECK_THROWS_AS(s.remove(thrower{}), std::runtime_error);
  CHECK(s.size() == 1);
}

TEST_CASE("an object with == removes itself inside of its call") {
  struct self {
    mcast::signal<void()> *s;
    multicast_status *status;
    void operator()() const { *status = s->remove(*this).status(); }
    bool operator==(const self &other) const { return s == other.s; }
  };
  mcast::signal<void()> s;
  multicast_status status = MULTICAST_OK;
  s.add(self{&s, &status});
  s();
  CHECK(status == MULTICAST_PENDING);
  CHECK(s.empty());
}

}  // namespace removal_tests
