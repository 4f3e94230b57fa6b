// Code that must not compile. A part begins with a line `// error:`, which contains a regular
// expression, and ends before the next such line. `check-refused` compiles each part as a separate
// program. With the line that ends with `// refused`, the program must cause an error that matches
// the regular expression. Without that line, the program must compile.

#include <multicast/next.hpp>
#include <multicast/spy.hpp>

#include <memory>
#include <string>
#include <utility>

struct listener {
  void hear() {}
  void hear_number(int) {}
  void change(int &) {}
};
struct stranger {
  void hear() {}
};
struct with_overloads {
  void hear(int) {}
  void hear(double) {}
};

// ---- Delegates ----------------------------------------------------------------------------------

// error: a signal takes a function type
void no_function_type() {
  [[maybe_unused]] mcast::signal<int> refused;  // refused
  [[maybe_unused]] mcast::signal<void(int)> s;
}

// error: the delegate cannot be called with the arguments of the signal
void wrong_arguments(mcast::signal<void(int, bool)> &s) {
  s.add([](const char *) {});  // refused
  s.add([](int, bool) {});
}

// error: the delegate cannot be called with the arguments of the signal
void wrong_result(mcast::signal<int(int)> &s) {
  s.add([](int) {});  // refused
  s.add([](int n) { return n; });
}

// error: the delegate cannot be called .*, or returns something else
void result_that_is_converted(mcast::signal<const double &()> &s) {
  static double number = 0;
  s.add([] { return 1.0; });  // refused
  s.add([]() -> double & { return number; });
}

// error: the other signal cannot be invoked with the arguments of this one
void signal_of_other_results(mcast::signal<int(int)> &s, mcast::signal<void(int)> &other) {
  mcast::signal<int(int)> alike;
  s.add(other);  // refused
  s.add(alike);
  static_cast<void>(other);
}

// error: tracked\(\) takes a callable and pointers
void tracked_without_objects(mcast::signal<void()> &s) {
  s.add(mcast::tracked([] {}, 3));  // refused
  s.add(mcast::tracked([] {}, std::make_shared<int>()));
}

// error: keep the registration that add\(\) returns
void removal_of_a_large_lambda(mcast::signal<void()> &s) {
  char large[64] = {};
  const auto lambda = [large] { static_cast<void>(large); };
  s.add(lambda);
  s.remove(lambda);  // refused
}

// error: give options as mcast::on\(queue\)
void queue_for_options(mcast::signal<void(int)> &s, mcast::queue &loop) {
  s.add([](int) {}, loop);  // refused
  s.add([](int) {}, mcast::on(loop));
}

// error: give options as mcast::on\(queue\)
void lifetime_for_options(mcast::signal<void(int)> &s, const mcast::lifetime &plugin) {
  s.add([](int) {}, plugin);  // refused
  s.add([](int) {}, mcast::under(plugin));
}

// error: give options as .*priority\(1\)
void number_for_options(mcast::signal<void(int)> &s) {
  s.add([](int) {}, 1);  // refused
  s.add([](int) {}, mcast::priority(1));
}

// ---- Objects ------------------------------------------------------------------------------------

// error: the object must live longer than this call
void temporary_object(mcast::signal<void()> &s, listener &kept) {
  s.add(listener(), &listener::hear);  // refused
  s.add(kept, &listener::hear);
}

// error: the object must live longer than this call
void temporary_object_of_a_method(mcast::signal<void(int)> &s, listener &kept, mcast::queue &loop) {
  s.add<&listener::hear_number>(listener());  // refused
  s.add<&listener::hear_number>(kept, mcast::on(loop));
}

// error: is not a method of the object
void method_of_another_class(mcast::signal<void()> &s, listener &o) {
  s.add(o, &stranger::hear);  // refused
  s.add(o, &listener::hear);
}

// error: is not a method of the object
void owner_of_the_object(mcast::signal<void()> &s) {
  const auto owner = std::make_unique<listener>();
  s.add(owner, &listener::hear);  // refused
  s.add(owner.get(), &listener::hear);
}

// error: mcast::observer must be a public base class
void observer_in_private(mcast::signal<void()> &s) {
  struct secretly : private mcast::observer {
    void hear() {}
  };
  struct openly : public mcast::observer {
    void hear() {}
  };
  secretly refused;
  openly o;
  s.add(refused, &secretly::hear);  // refused
  s.add(o, &openly::hear);
}

// ---- Queues -------------------------------------------------------------------------------------

// error: this signal cannot be queued: give it arguments that are copyable values
void queue_and_reference(mcast::signal<void(int &)> &s, mcast::queue &loop) {
  s.add([](int &) {}, mcast::on(loop));  // refused
  s.add([](int &) {}, mcast::priority(1));
  static_cast<void>(loop);
}

// error: this signal cannot be queued: give it arguments that are copyable values
void queue_in_braces(mcast::signal<void(int &)> &s, mcast::queue &loop) {
  s.add([](int &) {}, {false, false, false, false, 0, {}, loop});  // refused
  s.add([](int &) {}, {true});
  static_cast<void>(loop);
}

// error: this signal cannot be queued: give it arguments that are copyable values
void queue_and_method(mcast::signal<void(int &)> &s, listener &o, mcast::queue &loop) {
  s.add(o, &listener::change, mcast::on(loop) | mcast::latest);  // refused
  s.add(o, &listener::change);
  static_cast<void>(loop);
}

// error: this signal cannot be queued: give it arguments that are copyable values
void queue_and_move_only(mcast::signal<void(std::unique_ptr<int>)> &s, mcast::queue &loop) {
  s.add([](const std::unique_ptr<int> &) {}, mcast::once | mcast::on(loop));  // refused
  s.add([](const std::unique_ptr<int> &) {}, mcast::once);
  static_cast<void>(loop);
}

// error: this signal cannot be queued: give it arguments that are copyable values
void queue_and_result(mcast::signal<int(int)> &s, mcast::queue &loop) {
  s.add([](int n) { return n; }, mcast::on(loop));  // refused
  s.add([](int n) { return n; });
  static_cast<void>(loop);
}

// error: post\(\) takes a callable without arguments
void post_with_arguments(mcast::queue &loop) {
  loop.post([](int) {});  // refused
  loop.post([] {});
}

// error: post_and_wait\(\) takes a callable without arguments
void wait_with_arguments(mcast::queue &loop) {
  loop.post_and_wait([](int) {});  // refused
  loop.post_and_wait([] {});
}

// ---- Results ------------------------------------------------------------------------------------

// error: void
bool condition(mcast::signal<void(int)> &s) {
  return s(1);  // refused
  return s.invoke(1) > 0;
}

// error: all\(\), any\(\) and all_or_undo\(\) take results that are conditions
void results_that_are_no_conditions(mcast::signal<std::string()> &s) {
  static_cast<void>(s.all());  // refused
  static_cast<void>(s.first_of());
}

// error: these are not the arguments of the signal; a reference takes a variable
void iteration_of_a_temporary(mcast::signal<int(int &)> &s, int &variable) {
  static_cast<void>(s.results(1));  // refused
  static_cast<void>(s.results(variable));
}

// error: the results end with this call: let the combiner return a value
void combiner_that_returns_a_reference(mcast::signal<std::unique_ptr<int>()> &s) {
  const auto refer = [](auto first, auto) -> decltype(auto) { return *first; };
  static_cast<void>(s.combine(refer));  // refused
  static_cast<void>(refer);
  static_cast<void>(s.combine([](auto first, auto) { return std::move(*first); }));
}

// error: the results end with this call: let the combiner return a value
void combiner_that_returns_an_iterator(mcast::signal<int()> &s) {
  static_cast<void>(s.combine([](auto first, auto) { return first; }));  // refused
  static_cast<void>(s.combine([](auto first, auto) { return *first; }));
}

// ---- Invocations that are kept ------------------------------------------------------------------

// error: this signal cannot replay: give it arguments that are copyable values
void replay_and_move_only() {
  auto how = mcast::replay(1);
  how.label = "texts";
  const mcast::signal<void(std::unique_ptr<int>)> refused{how};  // refused
  const mcast::signal<void(std::shared_ptr<int>)> s{how};
}

// error: this signal cannot replay: give it arguments that are copyable values
void replay_and_reference() {
  const mcast::signal<void(int &)> refused{mcast::replay(1)};  // refused
  const mcast::signal<void(const int &)> s{mcast::replay(1)};
}

// error: this signal cannot replay: .*the result void
void replay_and_result() {
  const mcast::signal<int(int)> refused{mcast::replay(1)};  // refused
  const mcast::signal<void(int)> s{mcast::replay(1)};
}

// error: the next invocation of this signal cannot be kept
void next_and_reference(mcast::signal<void(int &)> &s, mcast::signal<void(const int &)> &kept) {
  static_cast<void>(mcast::next(s));  // refused
  static_cast<void>(mcast::next(kept));
  static_cast<void>(s);
}

// error: a spy cannot keep the arguments of this signal
void spy_and_move_only(mcast::signal<void(std::unique_ptr<int>)> &s, mcast::signal<void(int)> &t) {
  const mcast::spy refused(s);  // refused
  const mcast::spy seen(t);
  static_cast<void>(s);
}

// error: a spy is of a signal without results
void spy_and_result(mcast::signal<int(int)> &s, mcast::signal<void(int)> &t) {
  const mcast::spy refused(s);  // refused
  const mcast::spy seen(t);
  static_cast<void>(s);
}

// error: use_static_cast_to_name_one_overloaded_function|call to deleted member function 'add'
void overloaded_method(mcast::signal<void(int)> &s, with_overloads &o) {
  s.add(o, &with_overloads::hear);  // refused
  s.add(o, static_cast<void (with_overloads::*)(int)>(&with_overloads::hear));
}

// error: use_static_cast_to_name_one_overloaded_function|call to deleted member function 'add'
void overloaded_method_by_a_view(mcast::signal<void(int)> &s, with_overloads &o) {
  s.connectable().add(o, &with_overloads::hear);  // refused
  s.connectable().add(o, static_cast<void (with_overloads::*)(int)>(&with_overloads::hear));
}

// error: these_are_not_the_arguments_of_the_signal|call to deleted function call operator
void wrong_arguments(mcast::signal<void(int, const char *)> &s) {
  s("text", 3);  // refused
  s(3, "text");
}

// error: these_are_not_the_arguments_of_the_signal|call to deleted function call operator
void wrong_arguments_with_results(mcast::signal<int(int)> &s) {
  s("text");  // refused
  s(3);
}

// error: use of deleted function .*signal\(const|call to deleted constructor of .*signal
void copied_signal(mcast::signal<void(int)> &s) {
  mcast::signal<void(int)> refused(s);  // refused
  mcast::signal<void(int)> moved(std::move(s));
}
