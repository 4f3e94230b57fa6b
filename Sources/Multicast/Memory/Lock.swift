import MulticastShims

/// A mutex in static storage. Locks are taken in this order, each only while those before it may be
/// held: a stripe's, a lifetime's, the names', the slabs', the calls', a queue's. No function of
/// the caller's runs, and no memory barrier of the process is asked for, while any is held; the
/// allocator's functions aside.
struct Lock {
  let mutex: UnsafeMutablePointer<pthread_mutex_t>

  /// Guards the members of the lifetimes whose indices share it. Never two of these at once.
  @inline(__always) static func lifetimes(_ index: UInt32) -> Lock {
    Lock(mutex: shims_get_lifetime_mutex(index))
  }

  /// Guards all but the handle of the queues whose indices share it. Never two of these at once.
  @inline(__always) static func queues(_ index: UInt32) -> Lock {
    Lock(mutex: shims_get_queue_mutex(index))
  }

  /// Guards the making of names in broadcasters.
  @inline(__always) static var names: Lock { Lock(mutex: shims_get_name_mutex()) }

  /// Guards the slab directories, the vacant slots and the start of the library.
  @inline(__always) static var slabs: Lock { Lock(mutex: shims_get_slab_mutex()) }

  /// Guards who waits for which call, and the list of departures.
  @inline(__always) static var calls: Lock { Lock(mutex: shims_get_call_mutex()) }

  @inline(__always) func lock() {
    checkBeforeLocking()
    shims_lock(mutex)
  }

  @inline(__always) func unlock() {
    shims_unlock(mutex)
    checkAfterUnlocking()
  }

  /// Every lock there is, in the order in which they are taken.
  static func forEach(_ body: (Lock) -> Void) {
    var index: UInt32 = 0
    while index < Stripe.count {
      body(Stripe(of: index).mutex)
      index &+= 1
    }
    index = 0
    while index < UInt32(SHIMS_LIFETIME_MUTEX_COUNT) {
      body(lifetimes(index))
      index &+= 1
    }
    body(names)
    body(slabs)
    body(calls)
    forEachOfQueues(body)
  }

  private static func forEachOfQueues(_ body: (Lock) -> Void) {
    var index: UInt32 = 0
    while index < UInt32(SHIMS_QUEUE_MUTEX_COUNT) {
      body(queues(index))
      index &+= 1
    }
  }

  /// Makes all locks anew, in the child of a fork.
  static func resetAll() {
    forEach { shims_lock_init($0.mutex, false) }
    forEachOfQueues { shims_lock_init($0.mutex, true) }
  }
}

/// One of 32 locks, chosen by a multicast's index: guards everything of the multicasts that share
/// it but what invocations read, and the pool that their registrations come from.
struct Stripe {
  fileprivate static let count = UInt32(SHIMS_STRIPE_COUNT)

  let state: UnsafeMutablePointer<shims_stripe>

  @inline(__always) init(of multicast: UInt32) {
    state = shims_get_stripe(multicast).unsafelyUnwrapped
  }

  @inline(__always) fileprivate var mutex: Lock {
    Lock(mutex: shims_get_stripe_mutex(state))
  }

  @inline(__always) func lock() { mutex.lock() }
  @inline(__always) func unlock() { mutex.unlock() }
}
