import MulticastShims

/// A mutex in static storage. Locks are taken in this order, each only while those before it may
/// be held: a stripe's, a lifetime's, the slabs', the calls'. No function of the caller's runs, and no memory
/// barrier of the process is asked for, while any is held; the allocator's functions aside.
struct Lock {
  let mutex: UnsafeMutablePointer<pthread_mutex_t>

  static let lifetimeCount = UInt32(SHIMS_LIFETIME_MUTEX_COUNT)

  /// Guards the members of the lifetimes whose indices share it. Never two of these at once.
  @inline(__always) static func lifetimes(_ index: UInt32) -> Lock {
    Lock(mutex: shims_get_lifetime_mutex(index))
  }

  /// Guards the slab directories, the vacant slots and the start of the library.
  @inline(__always) static var slabs: Lock { Lock(mutex: shims_get_slab_mutex()) }

  /// Guards who waits for which call, and the list of departures.
  @inline(__always) static var calls: Lock { Lock(mutex: shims_get_call_mutex()) }

  @inline(__always) func lock() { shims_lock(mutex) }
  @inline(__always) func unlock() { shims_unlock(mutex) }

  /// Makes the lock anew, in the child of a fork.
  func reset() { shims_lock_init(mutex) }
}

/// One of 32 locks, chosen by a multicast's index: guards everything of the multicasts that share
/// it but what invocations read, and the pool that their registrations come from.
struct Stripe {
  static let count = UInt32(SHIMS_STRIPE_COUNT)

  let state: UnsafeMutablePointer<shims_stripe>

  @inline(__always) init(of multicast: UInt32) {
    state = shims_get_stripe(multicast).unsafelyUnwrapped
  }

  @inline(__always) private var mutex: Lock {
    Lock(mutex: shims_get_stripe_mutex(state))
  }

  @inline(__always) func lock() { mutex.lock() }
  @inline(__always) func unlock() { mutex.unlock() }
  func reset() { mutex.reset() }
}
