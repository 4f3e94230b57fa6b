#include "MulticastRuntime.h"

#include <pthread.h>
#include <stdlib.h>

#include "../../include/multicast.h"

// The Swift calling convention passes a closure's captured variables in a separate register.
#ifdef __clang__
#define SWIFT_CALL __attribute__((swiftcall))
#define SWIFT_CONTEXT __attribute__((swift_context))
#else  // only for static analysis: SwiftPM compiles with clang
#define SWIFT_CALL
#define SWIFT_CONTEXT
#endif

// ---- Visits -------------------------------------------------------------------------------------

// The type of a closure `(UnsafeMutableRawPointer?, multicast_function?) -> Bool`. The closure's
// arguments are a delegate's fields, passed in registers. Only the lowest bit of the result is
// defined.
typedef SWIFT_CALL uint8_t closure_function(void *context, multicast_function function,
                                            SWIFT_CONTEXT void *captured);

typedef struct closure {
  closure_function *function;
  void *captured;
} closure;

static bool visit(void *context, const multicast_delegate *delegate) {
  const closure *c = context;
  return c->function(delegate->context, delegate->function, c->captured) & 1;
}

static bool enumerate(void *context, const multicast_registration *registration) {
  multicast_delegate delegate = registration->delegate;
  if (registration->strong) delegate.context = registration->strong;
  return visit(context, &delegate);
}

// MulticastSwift declares these functions by their symbol names. Swift passes a nonescaping closure
// as two arguments, with the captured variables on the caller's stack, so a visit allocates
// nothing.

SWIFT_CALL int64_t multicast_swift_visit(uint64_t target, closure_function *function,
                                         void *captured) {
  closure body = {function, captured};
  return multicast_visit((multicast){target}, visit, &body);
}

SWIFT_CALL int64_t multicast_swift_visit_token(uint64_t token, closure_function *function,
                                               void *captured) {
  closure body = {function, captured};
  return multicast_token_visit((multicast_token){token}, visit, &body);
}

SWIFT_CALL int64_t multicast_swift_enumerate(uint64_t target, closure_function *function,
                                             void *captured) {
  closure body = {function, captured};
  return multicast_enumerate((multicast){target}, enumerate, &body);
}

// ---- Types --------------------------------------------------------------------------------------

// The first fields of type metadata, which are part of the runtime's ABI.
typedef struct metadata {
  uintptr_t kind;
  uint32_t flags;  // only in protocol types
} metadata;

enum { KIND_CLASS = 0, KIND_PROTOCOLS = 0x303 };
#define FOR_ANY_TYPE UINT32_C(0x80000000)

bool multicast_swift_is_class_bound(const void *type) {
  const metadata *m = type;
  return m->kind == KIND_CLASS || (m->kind == KIND_PROTOCOLS && !(m->flags & FOR_ANY_TYPE));
}

// ---- Marks --------------------------------------------------------------------------------------

// These functions are never called, because MulticastSwift visits its delegates instead of invoking
// them.
void multicast_swift_object(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

void multicast_swift_value(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  __asm__("" : : "r"(context));  // prevents the linker from merging the two functions
}

// ---- Locks --------------------------------------------------------------------------------------

// The locks are written in C, so that no Swift file has to import a libc. The Swift modules of
// glibc and musl have different names.

void *multicast_swift_lock_create(void) {
  pthread_mutex_t *mutex = malloc(sizeof *mutex);
  if (!mutex || pthread_mutex_init(mutex, NULL) != 0) abort();
  return mutex;
}

void multicast_swift_lock_destroy(void *lock) {
  pthread_mutex_destroy(lock);
  free(lock);
}

void multicast_swift_lock(void *lock) { pthread_mutex_lock(lock); }

void multicast_swift_unlock(void *lock) { pthread_mutex_unlock(lock); }
