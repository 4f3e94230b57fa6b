// Functions that MulticastSwift needs but cannot import in any other way.

#ifndef MULTICAST_RUNTIME_H
#define MULTICAST_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- The Swift runtime --------------------------------------------------------------------------

// These functions are part of the Swift runtime's ABI, which is stable on Apple's systems and has
// not changed on Linux since Swift 4.
//
// An object has a strong and an unowned reference count. When the strong count becomes zero, the
// object is deinitialized. Its memory is freed only when the unowned count is also zero. So the
// owner of an unowned reference can try to acquire a strong reference at any time.

/// Acquires a strong reference. Returns NULL if the object is being deinitialized or has been
/// deinitialized.
void *swift_tryRetain(void *object);
/// Acquires a strong reference. Returns `object`.
void *swift_retain(void *object);
/// Releases a strong reference.
void swift_release(void *object);
/// Acquires an unowned reference. Returns `object`.
void *swift_unownedRetain(void *object);
/// Releases an unowned reference.
void swift_unownedRelease(void *object);

/// Returns true if the metadata describes a class or a class-bound protocol. The first word of a
/// value of such a type is the object.
bool multicast_swift_is_class_bound(const void *type);

// ---- Marks --------------------------------------------------------------------------------------

/// MulticastSwift registers this function for delegates whose context is the delegate itself. It is
/// never called.
void multicast_swift_object(void *context, uint32_t event, const void *payload, size_t size);
/// MulticastSwift registers this function for delegates whose context is an object that contains
/// the delegate. It is never called.
void multicast_swift_value(void *context, uint32_t event, const void *payload, size_t size);

// ---- Locks --------------------------------------------------------------------------------------

/// Creates a mutex, or aborts if memory is exhausted. MulticastSwift does not use Swift's `Mutex`,
/// because `Mutex` waits in code compiled without the thread sanitizer, so the sanitizer would
/// report false races.
void *multicast_swift_lock_create(void);
void multicast_swift_lock_destroy(void *lock);
void multicast_swift_lock(void *lock);
void multicast_swift_unlock(void *lock);

#endif
