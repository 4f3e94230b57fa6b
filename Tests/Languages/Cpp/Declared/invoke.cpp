// Invokes signals whose argument types are only declared in this file and defined in another file.
#include <multicast.hpp>

struct declared;
void invoke_declared(const mcast::signal<void(const declared &)> &s, const declared &argument);
void invoke_declared(const mcast::signal<void(const declared &)> &s, const declared &argument) {
  s(argument);
}

struct replayed;
void invoke_replayed(const mcast::signal<void(const replayed &)> &s, const replayed &argument);
void invoke_replayed(const mcast::signal<void(const replayed &)> &s, const replayed &argument) {
  s(argument);
}

struct deferred;
void invoke_deferred(const mcast::signal<void(const deferred &)> &s, const deferred &argument);
void invoke_deferred(const mcast::signal<void(const deferred &)> &s, const deferred &argument) {
  s(argument);
}
