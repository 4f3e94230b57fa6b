/* Atomic accesses of the stress program. All of them are relaxed, so that nothing but the library
 * orders the accesses of different threads. If the library fails to order them, the thread
 * sanitizer reports a race. */

#ifndef ATOMICS_H
#define ATOMICS_H

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_RELAXED)
#define STORE(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_RELAXED)
#define ADD(variable, value) __atomic_add_fetch(&(variable), (value), __ATOMIC_RELAXED)
#define SWAP(variable, value) __atomic_exchange_n(&(variable), (value), __ATOMIC_RELAXED)
#define CHANGE(variable, expected, value) \
  __atomic_compare_exchange_n(&(variable), expected, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

#endif
