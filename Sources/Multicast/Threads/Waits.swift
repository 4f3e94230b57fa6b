import MulticastShims
import Synchronization

/// What a thread sleeps for. Other threads read it to find cycles of waits.
enum Wait {
  /// A wait for a condition that no delegate call can affect.
  case nothing
  /// A wait for running calls of a registration to return.
  case calls(Token)
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
    /// The references to the receipt, in the lower half. One of them is that of the waiting thread.
    let references: UnsafeMutablePointer<Atomic<UInt64>>
    /// The queue's slot, and the queue's handle: the slot may have another occupant.
    let slot: UnsafeMutablePointer<SlotHeader>
    let queue: Handle
    /// The thread that is expected to run those that wait in the queue.
    let consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>

    /// Whether the wait is over. The thread may not have run again yet.
    ///
    /// Acquire: what the calls did happened before.
    var areOver: Bool {
      UInt32(truncatingIfNeeded: references.pointee.load(ordering: .acquiring)) <= 1
    }

    /// Whether the queue exists. After it was destroyed, all that is left are running calls.
    var hasQueue: Bool { slot.pointee.id.load(ordering: .acquiring) == queue }
  }

  var isNothing: Bool {
    if case .nothing = self { return true }
    return false
  }

  /// Whether it ends when a queue is run.
  var isForQueue: Bool {
    switch self {
    case .room, .run: true
    case .nothing, .calls, .thread, .releases: false
    }
  }

  var isForReleases: Bool {
    if case .releases = self { return true }
    return false
  }

  /// Whether one thread is expected to end this wait, wherever that thread is.
  var isForThread: Bool {
    switch self {
    case .thread, .room, .run: true
    case .nothing, .calls, .releases: false
    }
  }

  /// Whether this thread can end the wait.
  func concerns(_ record: ThreadRecord) -> Bool {
    switch self {
    case .nothing, .releases: return false
    case .calls(let token): return record.isCalling(token)
    case .thread(let identity), .room(let identity): return Self.isThat(identity, of: record)
    case .run(let calls):
      // The handle after the consumer: that may be of the slot's next occupant.
      if Self.isThat(calls.consumer, of: record) && calls.hasQueue { return true }
      return record.retains(calls.receipt)
    }
  }

  private static func isThat(
    _ identity: UnsafeMutablePointer<Atomic<ThreadIdentity>>, of record: ThreadRecord
  ) -> Bool {
    // Relaxed: the thread that will do it may be another by then.
    let identity = identity.pointee.load(ordering: .relaxed)
    return !identity.isNone && identity == record.identity
  }

  /// Whether it is a wait for a queue, and no thread is known that is going to run it. A wait for
  /// one thread is different: a thread without a record is outside all calls, and begins or ends
  /// whatever other threads do.
  fileprivate var isForUnknownThread: Bool {
    if case .run(let calls) = self, !calls.hasQueue { return false }
    return isForQueue && !ThreadRegistry.all.contains { concerns($0) }
  }
}

extension ThreadRecord {
  /// What the thread sleeps for; nothing if that is over, and the thread only has to run again.
  fileprivate var currentWait: Wait {
    if case .run(let calls) = wait, calls.areOver { return .nothing }
    return wait
  }
}

/// The wait graph: which thread sleeps for what, and whether one more wait would close a cycle.
///
/// A thread that sleeps has published what it sleeps for, and cannot change what it is calling. All
/// of this is guarded by the waits' lock. The lock also orders a change with the wake-up that
/// reports it: a thread looks, and goes to sleep, under one hold of the lock, so no wake-up is
/// lost.
enum Waits {
  /// How far the search for a cycle has come with a thread.
  enum Search: UInt8 { case unknown, reached, followed }

  /// A sleeping thread without a record: it is outside all calls. It is on that thread's stack.
  private struct Stranger {
    let wait: Wait
    var next: UnsafeMutablePointer<Stranger>?
  }
  nonisolated(unsafe) private static var firstStranger: UnsafeMutablePointer<Stranger>? = nil

  nonisolated(unsafe) private(set) static var sleeperCount = 0
  /// How many of them sleep for one thread, whether that thread is in a call or not.
  nonisolated(unsafe) private(set) static var threadSleeperCount = 0

  // MARK: - Sleeping

  /// Waits for a condition that no delegate call can affect.
  static func sleep(until isTrue: () -> Bool) {
    Lock.waits.lock()
    while !isTrue() { sleep(for: .nothing, .unlimited) }
    Lock.waits.unlock()
  }

  /// Waits for a condition that another thread brings about.
  ///
  /// - Returns: `ok`; `pending`, if that thread waits for this one, directly or through others; or
  ///   `timeout`.
  static func sleep(
    for wait: Wait, _ timeout: Timeout = .unlimited, until isTrue: () -> Bool
  ) -> Status {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    while !isTrue() {
      if closesCycle(wait) { return .pending }  //~ cycle_of_waits_not_found
      if timeout.isOver { return .timeout }
      sleep(for: wait, timeout)
    }
    return .ok
  }

  /// Waits for a condition that release functions bring about, on any threads. For a thread that is
  /// outside all calls and releases.
  ///
  /// - Returns: `ok`; `pending`, if a thread may wait for this one nevertheless, to run a queue; or
  ///   `timeout`.
  static func sleepForReleases(_ timeout: Timeout, until isTrue: () -> Bool) -> Status {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    while !isTrue() {
      if threadSleeperCount > 0 && mayBeAwaited(ThreadRecord.current) { return .pending }
      if timeout.isOver { return .timeout }
      sleep(for: .releases, timeout)
    }
    return .ok
  }

  /// Whether a thread waits for this one, or for a queue that only this one may be going to run.
  private static func mayBeAwaited(_ thread: ThreadRecord?) -> Bool {
    ThreadRegistry.all.contains {
      let wait = $0.currentWait
      if wait.isForQueue && wait.isForUnknownThread { return true }
      guard let thread else { return false }
      return wait.isForThread && wait.concerns(thread)
    }
  }

  /// Makes sleeping threads look again, after a change.
  ///
  /// - Parameter change: Made under the lock, for a change that the lock has to guard.
  static func wake(_ change: () -> Void = {}) {
    Lock.waits.lock()
    change()
    wakeSleepers()
    Lock.waits.unlock()
  }

  // MARK: - Under the lock

  /// Sleeps until woken, or until the timeout is over. The lock is released meanwhile.
  static func sleep(for wait: Wait, _ timeout: Timeout) {
    Lock.waits.checkBeforeSleeping()
    // Looked up each time: a release function that ran on this thread may have given it a record.
    let thread = ThreadRecord.current
    var stranger = Stranger(wait: wait, next: nil)
    withUnsafeMutablePointer(to: &stranger) { stranger in
      if let thread { thread.wait = wait } else { link(stranger) }
      let isForThread = wait.isForThread
      sleeperCount &+= 1  //~ sleeper_not_counted
      if isForThread { threadSleeperCount &+= 1 }
      shims_sleep(shims_get_wait_condition(), Lock.waits.mutex, timeout.deadline)
      if isForThread { threadSleeperCount &-= 1 }
      sleeperCount &-= 1
      if let thread { thread.wait = .nothing } else { unlink(stranger) }
    }
  }

  private static func link(_ stranger: UnsafeMutablePointer<Stranger>) {
    stranger.pointee.next = firstStranger
    firstStranger = stranger
  }

  private static func unlink(_ stranger: UnsafeMutablePointer<Stranger>) {
    if firstStranger == stranger {
      firstStranger = stranger.pointee.next
      return
    }
    var other = firstStranger
    while let current = other {
      if current.pointee.next == stranger { current.pointee.next = stranger.pointee.next }
      other = current.pointee.next
    }
  }

  static func wakeSleepers() {
    if sleeperCount > 0 { shims_wake_all(shims_get_wait_condition()) }
  }

  /// The child of a fork has none of the threads that slept.
  static func forgetSleepersInChild() {
    sleeperCount = 0
    threadSleeperCount = 0
    firstStranger = nil
  }

  /// Whether the threads that can end this wait wait for this thread, directly or through others.
  ///
  /// This is a breadth-first search over the sleeping threads. It begins with the threads that can
  /// end `first`, and follows what each of them sleeps for. If it reaches this thread, the wait
  /// would close a cycle.
  ///
  /// The search may reach a wait for a queue whose consumer is not known. Then any thread may be
  /// the consumer, this one too, so it counts as a cycle. There is one exception: `first` is itself
  /// a wait for a queue. This thread is then not expected to run the other queue: no thread has,
  /// and this one goes to sleep. Each sleeping thread may be the consumer, so the search continues
  /// with all of them.
  ///
  /// A thread that goes to sleep later makes the same search, and finds this wait published. A
  /// thread outside all calls delays no other thread, unless one waits for it to run a queue.
  static func closesCycle(_ first: Wait) -> Bool {
    let thread = ThreadRecord.current
    let isInside = thread?.isInside ?? false
    // A thread outside all calls may be the one that is expected to run a queue.
    let isForQueue = first.isForQueue && thread != nil
    guard isInside || isForQueue || threadSleeperCount > 0 else { return false }
    for record in ThreadRegistry.all { record.search = .unknown }
    var wait = first
    while true {
      if wait.isForUnknownThread && reachStrangers() { return true }
      reach(wait)
      if let thread, thread.search == .reached { return true }
      let next = ThreadRegistry.all.first { $0.search == .reached && !$0.currentWait.isNothing }
      guard let next else { return false }
      next.search = .followed
      wait = next.currentWait
      if wait.isForReleases || !first.isForQueue && wait.isForUnknownThread { return true }
    }
  }

  /// Marks the threads that a wait needs.
  private static func reach(_ wait: Wait) {
    let isForUnknownThread = wait.isForUnknownThread
    for record in ThreadRegistry.all where record.search == .unknown {
      let isAsleep = !record.currentWait.isNothing
      if isForUnknownThread ? isAsleep : wait.concerns(record) { record.search = .reached }
    }
  }

  /// Marks the threads that the threads without a record wait for.
  ///
  /// - Returns: whether one of them waits for release functions, which may run on any thread.
  private static func reachStrangers() -> Bool {
    var stranger = firstStranger
    while let current = stranger {
      if current.pointee.wait.isForReleases { return true }
      reach(current.pointee.wait)
      stranger = current.pointee.next
    }
    return false
  }

  /// The lock is held.
  static func checkInvariants(_ check: Check) {
    #if MULTICAST_INTERNAL_CHECKS
      check.that(
        threadSleeperCount >= 0 && threadSleeperCount <= sleeperCount,
        "a thread that sleeps for a thread is counted as sleeping",
        UInt64(truncatingIfNeeded: threadSleeperCount), UInt64(truncatingIfNeeded: sleeperCount))
    #endif
  }
}
