import MulticastShims
import Synchronization

/// Describes what a sleeping thread is waiting for. Other threads read it to find cycles of waits.
enum Wait {
  /// A wait for a condition that no call to a delegate can affect.
  case nothing
  /// A wait until the running calls to a registration's delegate have returned.
  case calls(Token)
  /// Like `calls`, but for several registrations. The token belongs to the first registration.
  case callsOfSeveral(Token)
  /// A wait for one thread. The pointer is the address of the thread's identity, which is none if
  /// the thread is unknown.
  case thread(UnsafeMutablePointer<Atomic<ThreadIdentity>>)
  /// A wait for room in a queue. The consumer is expected to run the queue, but any thread may run
  /// it.
  case room(consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>)
  /// A wait until an invocation's queued calls have all been made, dropped or cancelled.
  case run(QueuedCalls)
  /// A wait until release functions have returned, no matter on which thread they run.
  case releases

  /// The queued calls that share a receipt, which counts them.
  struct QueuedCalls {
    /// The address of the receipt. A thread that runs one of the calls has this address in a frame.
    let receipt: UInt
    /// The lower half counts the references to the receipt. The waiting thread holds one of these
    /// references.
    let references: UnsafeMutablePointer<Atomic<UInt64>>
    /// The queue's slot, which may have been reused, and the queue's handle.
    let slot: UnsafeMutablePointer<SlotHeader>
    let queue: Handle
    /// The thread that is expected to run the calls in the queue.
    let consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>

    /// Whether the calls are over. The waiting thread may not have noticed this yet.
    ///
    /// Acquire: the effects of the calls happen before this thread's next steps.
    var areOver: Bool {
      // order: calls_over
      UInt32(truncatingIfNeeded: references.pointee.load(ordering: .acquiring)) <= 1
    }

    /// Whether the queue still exists. Once the queue has been destroyed, only the running calls
    /// are left to wait for.
    var hasQueue: Bool { slot.pointee.id.load(ordering: .acquiring) == queue }  // order: occupant
  }

  var isNothing: Bool { if case .nothing = self { true } else { false } }
  var isForReleases: Bool { if case .releases = self { true } else { false } }

  /// Whether a run of a queue can end this wait.
  var isForQueue: Bool {
    switch self {
    case .room, .run: true
    case .nothing, .calls, .callsOfSeveral, .thread, .releases: false
    }
  }

  /// Whether one particular thread is expected to end this wait, even if that thread is not in a
  /// call.
  var isForThread: Bool {
    switch self {
    case .thread, .room, .run: true
    case .nothing, .calls, .callsOfSeveral, .releases: false
    }
  }

  /// The key on which the thread sleeps; 0 if the caller of `Waits.sleep` supplies the key.
  var key: Sleeper.Key {
    switch self {
    case .nothing, .releases: 0
    case .calls(let token): token.rawValue
    case .callsOfSeveral: Waits.anyCall
    case .thread(let identity), .room(let identity): UInt64(UInt(bitPattern: identity))
    case .run(let calls): UInt64(calls.receipt)
    }
  }

  /// The only thread that is expected to end this wait; nil if that thread is not known, or if
  /// several threads can end the wait.
  var soleThread: ThreadRecord? {
    switch self {
    case .thread(let identity), .room(let identity):
      return ThreadRegistry.record(of: identity.pointee.load(ordering: .relaxed))
    case .nothing, .calls, .callsOfSeveral, .run, .releases: return nil
    }
  }

  /// Whether a given thread can end the wait.
  func concerns(_ record: ThreadRecord) -> Bool {
    switch self {
    case .nothing, .releases: return false
    case .calls(let token), .callsOfSeveral(let token): return record.isCalling(token)
    case .thread(let identity), .room(let identity): return Self.isThat(identity, of: record)
    case .run(let calls):
      // Read the handle after the consumer. In the other order, the consumer might already belong
      // to the next queue in the slot.
      if Self.isThat(calls.consumer, of: record) && calls.hasQueue { return true }
      return record.retains(calls.receipt)
    }
  }

  @inline(never) private static func isThat(
    _ identity: UnsafeMutablePointer<Atomic<ThreadIdentity>>, of record: ThreadRecord
  ) -> Bool {
    // Relaxed is enough, because the identity may change right after this read anyway.
    let identity = identity.pointee.load(ordering: .relaxed)
    return !identity.isNone && identity == record.identity
  }

  /// Whether this is a wait for a queue whose consumer is not known. False for `thread`: if the
  /// thread has no record, it is outside all calls, so no wait of another thread can keep it from
  /// finishing its work.
  @inline(never) var isForUnknownThread: Bool {
    if case .run(let calls) = self, !calls.hasQueue { return false }
    if case .room = self { return soleThread == nil }
    return isForQueue && !ThreadRegistry.all.contains { concerns($0) }
  }
}

struct Timeout {
  /// The moment on the monotonic clock at which the wait ends. 0 means not to wait at all, `.max`
  /// means no limit, and `.max - 1` means `untilExit`.
  let deadline: UInt64

  static var none: Timeout { Timeout(deadline: 0) }
  static var unlimited: Timeout { Timeout(deadline: .max) }
  /// The timeout of removals. There is no limit, except that a thread inside exit() does not wait.
  /// If such a thread waited, and another thread were in a call that never returns, the destructors
  /// of static objects would wait for that call forever.
  static var untilExit: Timeout { Timeout(deadline: .max &- 1) }

  static func nanoseconds(_ timeout: UInt64) -> Timeout {
    let (deadline, isBeyond) = shims_now_ns().addingReportingOverflow(timeout)
    return Timeout(deadline: isBeyond ? .max : deadline)
  }

  var isNone: Bool { deadline == 0 }
  var isOver: Bool {
    if deadline < Self.untilExit.deadline { return shims_now_ns() >= deadline }
    return deadline == Self.untilExit.deadline && shims_is_inside_exit()
  }
}
