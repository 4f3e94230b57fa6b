// Functions that MulticastSwift needs and cannot import otherwise.

#ifndef MULTICAST_RUNTIME_H
#define MULTICAST_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- The Swift runtime --------------------------------------------------------------------------

// These functions are part of the ABI of the Swift runtime, which is stable on Apple's systems and
// has not changed on Linux since Swift 4.
//
// An object has a strong and an unowned reference count. When the strong count becomes zero, the
// object is deinitialized. Its memory is freed when the unowned count is zero, too. So the owner of
// an unowned reference can try to take a strong one at any time.

/// Takes a strong reference. Returns NULL if the object is being deinitialized, or has been.
void *swift_tryRetain(void *object);
/// Takes a strong reference. Returns `object`.
void *swift_retain(void *object);
/// Releases a strong reference.
void swift_release(void *object);
/// Takes an unowned reference. Returns `object`.
void *swift_unownedRetain(void *object);
/// Releases an unowned reference.
void swift_unownedRelease(void *object);

/// Returns true if the metadata says that a type is a class or a class-bound protocol. The first
/// word of a value of such a type is the object.
bool multicast_swift_is_class_bound(const void *type);

// ---- Marks --------------------------------------------------------------------------------------

/// Stands in for a delegate's function: the context is the delegate itself.
void multicast_swift_object(void *context, uint32_t event, const void *payload, size_t size);
/// Stands in for a delegate's function: the context is an object that contains the delegate.
void multicast_swift_value(void *context, uint32_t event, const void *payload, size_t size);

// ---- Locks --------------------------------------------------------------------------------------

/// Creates a mutex. Aborts if there is no memory. Swift's `Mutex` is not used because it waits in
/// code that was compiled without the thread sanitizer, which then reports false races.
void *multicast_swift_lock_create(void);
void multicast_swift_lock_destroy(void *lock);
void multicast_swift_lock(void *lock);
void multicast_swift_unlock(void *lock);

#endif
