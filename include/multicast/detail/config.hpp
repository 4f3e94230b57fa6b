// SPDX-License-Identifier: MIT
//
// Macros that depend on how the program is compiled.
#ifndef MULTICAST_DETAIL_CONFIG_HPP
#define MULTICAST_DETAIL_CONFIG_HPP

#include "../../multicast.h"

#if defined(__GNUC__) && !defined(_WIN32)
// Marks variables that exist separately in each module of a process. Without this attribute, g++
// makes them unique in the process, and the loader never unloads a plug-in with such a symbol.
#define MULTICAST_HPP_LOCAL __attribute__((visibility("hidden")))
#else
#define MULTICAST_HPP_LOCAL
#endif

#if defined(__cpp_exceptions)
#define MULTICAST_HPP_EXCEPTIONS 1
#define MULTICAST_HPP_NAMESPACE mcast
#else
// Code compiled without exceptions uses a different namespace, so that one program can contain code
// compiled with and without them.
#define MULTICAST_HPP_EXCEPTIONS 0
#define MULTICAST_HPP_NAMESPACE mcast_without_exceptions
namespace MULTICAST_HPP_NAMESPACE {}
namespace mcast = MULTICAST_HPP_NAMESPACE;
#endif

#endif
