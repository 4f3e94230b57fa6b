// SPDX-License-Identifier: MIT
//
// The system functions that the headers use: POSIX, or Windows.
#ifndef MULTICAST_DETAIL_SYSTEM_HPP
#define MULTICAST_DETAIL_SYSTEM_HPP

#include <cstdint>

#include "config.hpp"

namespace MULTICAST_HPP_NAMESPACE::detail {

/// Reads a number that the library may be writing at the same time.
inline uint64_t read_atomically(const uint64_t &number) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  return __atomic_load_n(&number, __ATOMIC_RELAXED);
#else
  return *static_cast<const volatile uint64_t *>(&number);
#endif
}

}  // namespace mcast::detail

#if defined(_WIN32)

// Declared as in <windows.h>, which is not included because it defines many macros.
struct _RTL_SRWLOCK;
extern "C" {
__declspec(dllimport) void __stdcall AcquireSRWLockExclusive(_RTL_SRWLOCK *);
__declspec(dllimport) void __stdcall ReleaseSRWLockExclusive(_RTL_SRWLOCK *);
__declspec(dllimport) unsigned long __stdcall GetCurrentThreadId();
__declspec(dllimport) unsigned long __stdcall TlsAlloc();
__declspec(dllimport) int __stdcall TlsFree(unsigned long);
__declspec(dllimport) void *__stdcall TlsGetValue(unsigned long);
__declspec(dllimport) int __stdcall TlsSetValue(unsigned long, void *);
}

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A mutex that needs no initialization, because it is unlocked when all of its bytes are zero.
struct process_mutex {
  void *native;
  void lock() noexcept { AcquireSRWLockExclusive(reinterpret_cast<_RTL_SRWLOCK *>(&native)); }
  void unlock() noexcept { ReleaseSRWLockExclusive(reinterpret_cast<_RTL_SRWLOCK *>(&native)); }
};

using thread_id = unsigned long;
inline thread_id this_thread_id() noexcept { return GetCurrentThreadId(); }

/// Does nothing, because Windows has no fork.
inline bool call_at_forks(void (*)(), void (*)()) noexcept { return true; }

/// The key of a thread-local pointer. All modules of the process can share it.
using thread_key = unsigned long;
inline bool make_key(thread_key *key) noexcept {
  *key = TlsAlloc();
  return *key != ~thread_key{0};
}
inline void drop_key(thread_key key) noexcept { static_cast<void>(TlsFree(key)); }
inline void *get_value(thread_key key) noexcept { return TlsGetValue(key); }
inline bool set_value(thread_key key, void *value) noexcept { return TlsSetValue(key, value) != 0; }

}  // namespace mcast::detail

#else

#include <pthread.h>

namespace MULTICAST_HPP_NAMESPACE::detail {

/// A mutex that needs no initialization, because it is unlocked when all of its bytes are zero.
struct process_mutex {
  pthread_mutex_t native;
  void lock() noexcept { static_cast<void>(pthread_mutex_lock(&native)); }
  void unlock() noexcept { static_cast<void>(pthread_mutex_unlock(&native)); }
};

using thread_id = pthread_t;
inline thread_id this_thread_id() noexcept { return pthread_self(); }

/// Registers two functions that are called at each fork. Returns false if there is no memory.
inline bool call_at_forks(void (*before)(), void (*after)()) noexcept {
  return pthread_atfork(before, after, after) == 0;
}

/// The key of a thread-local pointer. All modules of the process can share it.
using thread_key = pthread_key_t;
inline bool make_key(thread_key *key) noexcept { return pthread_key_create(key, nullptr) == 0; }
inline void drop_key(thread_key key) noexcept { static_cast<void>(pthread_key_delete(key)); }
inline void *get_value(thread_key key) noexcept { return pthread_getspecific(key); }
inline bool set_value(thread_key key, void *value) noexcept {
  return pthread_setspecific(key, value) == 0;
}

}  // namespace mcast::detail

#endif

#endif
