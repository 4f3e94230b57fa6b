// Invokes a signal whose argument is only declared here: tests.cpp has the rest.
#include <multicast.hpp>

struct declared;
void invoke_declared(const mcast::signal<void(const declared &)> &s, const declared &argument);
void invoke_declared(const mcast::signal<void(const declared &)> &s, const declared &argument) {
  s(argument);
}
