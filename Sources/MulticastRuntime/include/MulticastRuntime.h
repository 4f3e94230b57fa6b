// Functions that MulticastSwift needs and Swift cannot name.

#ifndef MULTICAST_RUNTIME_H
#define MULTICAST_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- The Swift runtime --------------------------------------------------------------------------

// These functions belong to the ABI of the Swift runtime, which is stable on Apple's systems. On
// Linux they have been the same since Swift 4.
//
// An object has a strong and an unowned reference count. When the strong one becomes zero, the
// object is deinitialized. Its memory is freed when the unowned one is zero, too. So the owner of
// an unowned reference may ask at any time for a strong one: NULL says that the object has ended.

/// Takes a strong reference. NULL: the object is being deinitialized, or has been.
void *swift_tryRetain(void *object);
/// Takes a strong reference. Returns `object`.
void *swift_retain(void *object);
/// Gives back a strong reference.
void swift_release(void *object);
/// Takes an unowned reference. Returns `object`.
void *swift_unownedRetain(void *object);
/// Gives back an unowned reference.
void swift_unownedRelease(void *object);

/// Whether a type, by its metadata, is certainly a class or a protocol for classes: the first word
/// of such a value is the object.
bool multicast_swift_is_class_bound(const void *type);

// ---- Marks --------------------------------------------------------------------------------------

/// In place of a delegate's function: the context is the delegate itself.
void multicast_swift_object(void *context, uint32_t event, const void *payload, size_t size);
/// In place of a delegate's function: the context is an object that has the delegate in it.
void multicast_swift_value(void *context, uint32_t event, const void *payload, size_t size);

// ---- Locks --------------------------------------------------------------------------------------

/// A mutex; without memory the program ends. (Swift's `Mutex` waits in code that was compiled
/// without the thread sanitizer, which then reports false races.)
void *multicast_swift_lock_create(void);
void multicast_swift_lock_destroy(void *lock);
void multicast_swift_lock(void *lock);
void multicast_swift_unlock(void *lock);

#endif
