// The interface between the program and its plug-ins.
#ifndef TESTS_CPP_UNLOAD_PLUGIN_HPP
#define TESTS_CPP_UNLOAD_PLUGIN_HPP

#include <multicast.hpp>

namespace unload_tests {

using event = mcast::signal<void(int)>;

}  // namespace unload_tests

#endif
