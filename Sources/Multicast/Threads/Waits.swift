import MulticastShims
import Synchronization

/// What a thread sleeps for. Other threads read it to find cycles of waits.
enum Wait {
  /// A condition that no delegate call can affect.
  case nothing
  /// The running calls of a registration's delegate to return.
  case calls(Token)
  /// One thread to do something. The pointer holds its identity, or none.
  case thread(UnsafeMutablePointer<Atomic<ThreadIdentity>>)
  /// Room in a queue: one thread to run the queue. Any other thread could do that in its place.
  case room(consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>)
  /// Release functions, on any thread.
  case releases

  var isNothing: Bool {
    if case .nothing = self { return true }
    return false
  }

  var isForRoom: Bool {
    if case .room = self { return true }
    return false
  }

  var isForReleases: Bool {
    if case .releases = self { return true }
    return false
  }

  /// The thread that has to do something, if it is one thread.
  var thread: UnsafeMutablePointer<Atomic<ThreadIdentity>>? {
    switch self {
    case .thread(let identity), .room(let identity): identity
    case .nothing, .calls, .releases: nil
    }
  }

  /// Whether it is this thread that has to do something.
  func concerns(_ record: ThreadRecord) -> Bool {
    if let thread {
      // Relaxed: the thread that will do it may be another by then.
      let identity = thread.pointee.load(ordering: .relaxed)
      return !identity.isNone && identity == record.identity
    }
    if case .calls(let token) = self { return record.isCalling(token) }
    return false
  }

  /// Whether it is unknown which thread has to do something.
  fileprivate var isForUnknownThread: Bool {
    if isForReleases { return true }
    return thread != nil && !ThreadRegistry.all.contains { concerns($0) }
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
  /// - Returns: false if that thread waits for this one, directly or through others.
  static func sleep(for wait: Wait, until isTrue: () -> Bool) -> Bool {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    while !isTrue() {
      if closesCycle(wait) { return false }
      sleep(for: wait, .unlimited)
    }
    return true
  }

  /// Waits for a condition that release functions bring about, on any threads. For a thread that is
  /// outside all calls and releases.
  ///
  /// - Returns: false if a thread may wait for this one nevertheless, to run a queue.
  static func sleepForReleases(until isTrue: () -> Bool) -> Bool {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    while !isTrue() {
      if threadSleeperCount > 0 && mayBeAwaited(ThreadRecord.current) { return false }
      sleep(for: .releases, .unlimited)
    }
    return true
  }

  /// Whether a thread waits for this one, or for room that only this one may be going to make.
  private static func mayBeAwaited(_ thread: ThreadRecord?) -> Bool {
    ThreadRegistry.all.contains {
      if $0.wait.isForRoom && $0.wait.isForUnknownThread { return true }
      guard let thread else { return false }
      return $0.wait.thread != nil && $0.wait.concerns(thread)
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
    thread?.wait = wait
    let isForThread = wait.thread != nil
    sleeperCount &+= 1  //~ sleeper_not_counted
    if isForThread { threadSleeperCount &+= 1 }
    shims_sleep(shims_get_wait_condition(), Lock.waits.mutex, timeout.deadline)
    if isForThread { threadSleeperCount &-= 1 }
    sleeperCount &-= 1
    thread?.wait = .nothing
  }

  static func wakeSleepers() {
    if sleeperCount > 0 { shims_wake_all(shims_get_wait_condition()) }
  }

  /// The child of a fork has none of the threads that slept.
  static func forgetSleepersInChild() {
    sleeperCount = 0
    threadSleeperCount = 0
  }

  /// Whether the threads that this wait needs wait for this thread, directly or through others.
  ///
  /// A thread that goes to sleep later looks for cycles itself, and finds this wait published. A
  /// thread outside all calls delays no other thread, unless one waits for it to run a queue.
  static func closesCycle(_ first: Wait) -> Bool {
    let thread = ThreadRecord.current
    let isInside = thread?.isInside ?? false
    guard isInside || threadSleeperCount > 0 else { return false }
    for record in ThreadRegistry.all { record.search = .unknown }
    reach(first)
    while thread == nil || thread?.search == .unknown {
      let next = ThreadRegistry.all.first { $0.search == .reached && !$0.wait.isNothing }
      guard let next else { return false }
      next.search = .followed
      let wait = next.wait
      if !wait.isForUnknownThread {
        reach(wait)
      } else if wait.isForReleases || !first.isForRoom {
        return true  // it may need this thread; but not if this thread needs the same itself
      }
    }
    return true
  }

  /// Marks the threads that a wait needs.
  private static func reach(_ wait: Wait) {
    let isForUnknownThread = wait.isForUnknownThread
    for record in ThreadRegistry.all where record.search == .unknown {
      let isAsleep = !record.wait.isNothing
      if isForUnknownThread ? isAsleep : wait.concerns(record) { record.search = .reached }
    }
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
