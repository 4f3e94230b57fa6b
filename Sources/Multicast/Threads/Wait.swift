import Synchronization

/// The reason why a thread sleeps. Other threads read it to find cycles of waits.
enum Wait {
  /// A wait for a condition that no delegate call can affect.
  case nothing
  /// A wait for running calls of a registration to return.
  case calls(Token)
  /// The same, for the first of several registrations.
  case callsOfSeveral(Token)
  /// A wait for one thread. The pointer leads to its identity; none: it is not known.
  case thread(UnsafeMutablePointer<Atomic<ThreadIdentity>>)
  /// A wait for room in a queue. The consumer is expected to run the queue; any other thread may.
  case room(consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>)
  /// A wait for calls of an invocation that wait in a queue, or run.
  case run(QueuedCalls)
  /// A wait for release functions, on any thread.
  case releases

  /// Calls that share a payload, the receipt, which counts them.
  struct QueuedCalls {
    /// A thread that runs one of them has the receipt in a frame.
    let receipt: UInt
    /// The references to the receipt, in the lower half. One of them is the waiting thread's.
    let references: UnsafeMutablePointer<Atomic<UInt64>>
    /// The queue's slot, and the queue's handle: the slot may have another occupant.
    let slot: UnsafeMutablePointer<SlotHeader>
    let queue: Handle
    /// The thread that is expected to run the calls in the queue.
    let consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>

    /// Whether the wait is over. The thread may not have run again yet.
    ///
    /// Acquire: the effects of the calls happen before.
    var areOver: Bool {
      // order: calls_over
      UInt32(truncatingIfNeeded: references.pointee.load(ordering: .acquiring)) <= 1
    }

    /// Whether the queue exists. After its destroy, only running calls are left.
    var hasQueue: Bool { slot.pointee.id.load(ordering: .acquiring) == queue }  // order: occupant
  }

  var isNothing: Bool { if case .nothing = self { true } else { false } }
  var isForReleases: Bool { if case .releases = self { true } else { false } }

  /// Whether the run of a queue ends this wait.
  var isForQueue: Bool {
    switch self {
    case .room, .run: true
    case .nothing, .calls, .callsOfSeveral, .thread, .releases: false
    }
  }

  /// Whether one thread is expected to end this wait, wherever that thread is.
  var isForThread: Bool {
    switch self {
    case .thread, .room, .run: true
    case .nothing, .calls, .callsOfSeveral, .releases: false
    }
  }

  /// The key that ends this wait, unless it is a wait for one thread.
  var key: Sleeper.Key {
    switch self {
    case .nothing, .releases: 0
    case .calls(let token): token.rawValue
    case .callsOfSeveral: Waits.anyCall
    case .thread(let identity), .room(let identity): UInt64(UInt(bitPattern: identity))
    case .run(let calls): UInt64(calls.receipt)
    }
  }

  /// The thread that is expected to end this wait, if it is the only one that can; nil otherwise.
  var soleThread: ThreadRecord? {
    switch self {
    case .thread(let identity), .room(let identity):
      return ThreadRegistry.record(of: identity.pointee.load(ordering: .relaxed))
    case .nothing, .calls, .callsOfSeveral, .run, .releases: return nil
    }
  }

  /// Whether this thread can end the wait.
  func concerns(_ record: ThreadRecord) -> Bool {
    switch self {
    case .nothing, .releases: return false
    case .calls(let token), .callsOfSeveral(let token): return record.isCalling(token)
    case .thread(let identity), .room(let identity): return Self.isThat(identity, of: record)
    case .run(let calls):
      // The handle after the consumer, which may be the one of the slot's next occupant.
      if Self.isThat(calls.consumer, of: record) && calls.hasQueue { return true }
      return record.retains(calls.receipt)
    }
  }

  @inline(never) private static func isThat(
    _ identity: UnsafeMutablePointer<Atomic<ThreadIdentity>>, of record: ThreadRecord
  ) -> Bool {
    // Relaxed: another thread may be the consumer by then.
    let identity = identity.pointee.load(ordering: .relaxed)
    return !identity.isNone && identity == record.identity
  }

  /// Whether this is a wait for a queue without a known consumer. A wait for one thread is
  /// different: a thread without a record is outside all calls, and begins or ends whatever other
  /// threads do.
  @inline(never) var isForUnknownThread: Bool {
    if case .run(let calls) = self, !calls.hasQueue { return false }
    if case .room = self { return soleThread == nil }
    return isForQueue && !ThreadRegistry.all.contains { concerns($0) }
  }
}
