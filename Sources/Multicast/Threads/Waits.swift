import MulticastShims
import Synchronization

/// What a thread sleeps for. Other threads read it to find cycles of waits.
enum Wait {
  /// A wait for a condition that no delegate call can affect.
  case nothing
  /// A wait for running calls of a registration to return.
  case calls(Token)
  /// The same for the first of several registrations.
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
      // order: calls_over
      UInt32(truncatingIfNeeded: references.pointee.load(ordering: .acquiring)) <= 1
    }

    /// Whether the queue exists. After it was destroyed, all that is left are running calls.
    var hasQueue: Bool { slot.pointee.id.load(ordering: .acquiring) == queue }  // order: occupant
  }

  var isNothing: Bool {
    if case .nothing = self { return true }
    return false
  }

  /// Whether it ends when a queue is run.
  var isForQueue: Bool {
    switch self {
    case .room, .run: true
    case .nothing, .calls, .callsOfSeveral, .thread, .releases: false
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
    case .nothing, .calls, .callsOfSeveral, .releases: false
    }
  }

  /// What wakes it, if it is not a wait for one thread.
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
  fileprivate var soleThread: ThreadRecord? {
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
      // The handle after the consumer: that may be of the slot's next occupant.
      if Self.isThat(calls.consumer, of: record) && calls.hasQueue { return true }
      return record.retains(calls.receipt)
    }
  }

  @inline(never) private static func isThat(
    _ identity: UnsafeMutablePointer<Atomic<ThreadIdentity>>, of record: ThreadRecord
  ) -> Bool {
    // Relaxed: the thread that will do it may be another by then.
    let identity = identity.pointee.load(ordering: .relaxed)
    return !identity.isNone && identity == record.identity
  }

  /// Whether it is a wait for a queue, and no thread is known that is going to run it. A wait for
  /// one thread is different: a thread without a record is outside all calls, and begins or ends
  /// whatever other threads do.
  @inline(never) fileprivate var isForUnknownThread: Bool {
    if case .run(let calls) = self, !calls.hasQueue { return false }
    if case .room = self { return soleThread == nil }
    return isForQueue && !ThreadRegistry.all.contains { concerns($0) }
  }
}

extension ThreadRecord {
  /// What the thread sleeps for, for a search; nothing if that is so by now, and the thread only
  /// has to run again. If it was woken in vain, it searches itself then, since this search passes
  /// it over.
  @inline(never) fileprivate var currentWait: Wait {
    if storage.pointee.isWoken {  //~ woken_is_followed
      storage.pointee.isPassedOver = true  //~ not_searched_after_passed_over
      return .nothing
    }
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

  /// Sleeping threads without a record: they are outside all calls.
  nonisolated(unsafe) private static var firstStranger: UnsafeMutablePointer<Sleeper>? = nil

  /// The key of waits for calls of one of several registrations.
  static let anyCall: Sleeper.Key = 1

  /// Rises whenever it may have changed who can end waits. Each thread that sleeps then searches
  /// for a cycle once more.
  nonisolated(unsafe) private static var generation: UInt64 = 0

  nonisolated(unsafe) private(set) static var sleeperCount = 0
  /// How many of them sleep for one thread, whether that thread is in a call or not.
  nonisolated(unsafe) private(set) static var threadSleeperCount = 0

  // MARK: - Sleeping

  /// Waits for a condition that no delegate call can affect.
  static func sleep(with key: Sleeper.Key, until isTrue: () -> Bool) {
    Lock.waits.lock()
    while !isTrue() { _ = sleep(for: .nothing, key, .unlimited) }
    Lock.waits.unlock()
  }

  /// Waits for a condition that another thread brings about.
  ///
  /// - Returns: `ok`; `pending`, if that thread waits for this one, directly or through others; or
  ///   `timeout`.
  @inline(never) static func sleep(
    for wait: Wait, _ timeout: Timeout = .unlimited, until isTrue: () -> Bool
  ) -> Status {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    var search = SearchNeeded.begins
    while !isTrue() {
      if search != .no && closesCycle(wait) { return .pending }  //~ cycle_of_waits_not_found
      if timeout.isOver { return .timeout }
      search = sleep(for: wait, wait.key, timeout, isAgain: search != .begins)
    }
    return .ok
  }

  /// Whether a thread has to search for a cycle before it sleeps. A wait that was published, and is
  /// published again under the same hold of the lock, is searched by the threads that sleep later.
  /// But not from when the thread is woken with its key until it runs again: a search meanwhile
  /// passes it over, since what it has slept for may be so by now, and notes that. Otherwise a
  /// thread that has ended the wait, and now waits for the call in which the woken one is, would
  /// find a cycle.
  enum SearchNeeded { case begins, again, no }

  /// Waits for a condition that release functions bring about, on any threads. For a thread that is
  /// outside all calls and releases.
  ///
  /// - Returns: `ok`; `pending`, if a thread may wait for this one nevertheless, to run a queue; or
  ///   `timeout`.
  static func sleepForReleases(
    with key: Sleeper.Key, _ timeout: Timeout, until isTrue: () -> Bool
  ) -> Status {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    while !isTrue() {
      if threadSleeperCount > 0 && mayBeAwaited(ThreadRecord.current) { return .pending }
      if timeout.isOver { return .timeout }
      _ = sleep(for: .releases, key, timeout)
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

  /// Makes all sleeping threads look again, and search for cycles again: after a change of who can
  /// end waits.
  ///
  /// - Parameter change: Made under the lock, for a change that the lock has to guard.
  static func wake(_ change: () -> Void = {}) {
    Lock.waits.lock()
    change()
    wakeSleepers()
    Lock.waits.unlock()
  }

  /// Makes the threads look again that sleep with a key.
  static func wake(_ key: Sleeper.Key, _ change: () -> Void = {}) {
    Lock.waits.lock()
    change()
    wakeSleepers(key)
    Lock.waits.unlock()
  }

  /// Makes one thread look again that sleeps with a key, the one that has slept longest.
  ///
  /// - Parameter none: Called under the lock if no other thread sleeps with the key.
  @inline(never)
  static func wakeOne(_ key: Sleeper.Key, _ none: () -> Void) {
    Lock.waits.lock()
    let sleeper = Sleeper.find(key, from: Sleeper.first(Sleeper.list(of: key)))
    // Woken without the lock, which is the first thing that it needs. By then it may have gone on,
    // and the word may be another's: threads that sleep with a word look at it.
    var word: UnsafeMutablePointer<UInt32>? = nil
    var next: UnsafeMutablePointer<Sleeper>? = nil
    if let sleeper {
      Sleeper.noteWoken(sleeper)
      word = Sleeper.word(of: sleeper)
      next = Sleeper.find(key, from: Sleeper.unlink(sleeper))
    }
    if next == nil { none() }
    Lock.waits.unlock()
    if let word { shims_futex_wake(word, 1) }
  }

  // MARK: - Under the lock

  /// Sleeps until woken, or until the timeout is over. The lock is released meanwhile.
  ///
  /// - Parameter isAgain: Whether it was woken in vain: it sleeps before the others then.
  /// - Returns: whether to search for a cycle before it sleeps again.
  @inline(never) static func sleep(
    for wait: Wait, _ key: Sleeper.Key, _ timeout: Timeout, isAgain: Bool = false
  ) -> SearchNeeded {
    Lock.waits.checkBeforeSleeping()
    // Looked up each time: a release function that ran on this thread may have given it a record.
    let thread = ThreadRecord.current
    let before = generation
    let now = shims_now_ns()
    var sleeper = Sleeper(wait: wait, key: key, since: now, by: thread)
    withUnsafeMutablePointer(to: &sleeper) { sleeper in
      if let thread {
        thread.wait = wait
        thread.storage.pointee.isWoken = false
        thread.storage.pointee.isPassedOver = false
        if !isAgain { thread.storage.pointee.waitsSince = now }
      } else {
        link(sleeper)
      }
      Sleeper.link(sleeper, isAgain: isAgain)
      let isForThread = wait.isForThread
      sleeperCount &+= 1  //~ sleeper_not_counted
      if isForThread { threadSleeperCount &+= 1 }
      Lock.waits.unlock()
      // Acquire: pairs with the release in `Sleeper.unlink`.
      // order: woken
      while sleeper.pointee.isWoken.load(ordering: .acquiring) == 0 && !timeout.isOver {
        shims_futex_wait(Sleeper.word(of: sleeper), 0, timeout.deadline)
      }
      Lock.waits.lock()
      if sleeper.pointee.isWoken.load(ordering: .relaxed) == 0 { Sleeper.unlink(sleeper) }
      if isForThread { threadSleeperCount &-= 1 }
      sleeperCount &-= 1
      if let thread { thread.wait = .nothing } else { unlink(sleeper) }
    }
    let isPassedOver = thread?.storage.pointee.isPassedOver ?? false
    return generation == before && !isPassedOver ? .no : .again
  }

  /// What a thread without a record sleeps for.
  ///
  /// - Parameter place: How many others come first in the list.
  static func stranger(at place: Int) -> UnsafeMutablePointer<Sleeper>? {
    var (stranger, left) = (firstStranger, place)
    while left > 0 {
      stranger = stranger?.pointee.nextStranger
      left &-= 1
    }
    return stranger
  }

  private static func link(_ stranger: UnsafeMutablePointer<Sleeper>) {
    stranger.pointee.nextStranger = firstStranger
    firstStranger = stranger
  }

  private static func unlink(_ stranger: UnsafeMutablePointer<Sleeper>) {
    if firstStranger == stranger {
      firstStranger = stranger.pointee.nextStranger
      return
    }
    var other = firstStranger
    while let current = other {
      let next = current.pointee.nextStranger
      if next == stranger { current.pointee.nextStranger = stranger.pointee.nextStranger }
      other = next
    }
  }

  static func wakeSleepers() {
    generation &+= 1
    if sleeperCount == 0 { return }
    var index = 0
    while index < Int(SHIMS_SLEEPER_LISTS) {
      while let sleeper = Sleeper.first(shims_get_sleepers(index)) { wake(sleeper) }
      index &+= 1
    }
  }

  static func wakeSleepers(_ key: Sleeper.Key) {
    if sleeperCount == 0 { return }
    let list = Sleeper.list(of: key)
    while let sleeper = Sleeper.find(key, from: Sleeper.first(list)) {
      Sleeper.noteWoken(sleeper)
      wake(sleeper)
    }
  }

  private static func wake(_ sleeper: UnsafeMutablePointer<Sleeper>) {
    Sleeper.unlink(sleeper)
    shims_futex_wake(Sleeper.word(of: sleeper), 1)
  }

  /// The child of a fork has none of the threads that slept.
  static func forgetSleepersInChild() {
    sleeperCount = 0
    threadSleeperCount = 0
    firstStranger = nil
    Sleeper.forgetAllInChild()
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
    if let closes = closesChain(first, thread) { return closes }
    for record in ThreadRegistry.all { record.search = .unknown }
    var hasReachedSleepers = false
    if reachAll(first, &hasReachedSleepers, thread) { return true }
    var isComplete = false
    while !isComplete {
      isComplete = true
      for record in ThreadRegistry.all where record.search == .reached {
        let wait = record.currentWait
        if wait.isNothing { continue }
        record.search = .followed
        isComplete = false
        if wait.isForReleases || !first.isForQueue && wait.isForUnknownThread { return true }
        if reachAll(wait, &hasReachedSleepers, thread) { return true }
      }
    }
    return false
  }

  /// Marks the threads that a wait needs: all that sleep, if it is for a thread that is not known.
  ///
  /// - Parameter hasReachedSleepers: Whether they were marked before.
  /// - Returns: whether this thread is one of them.
  @inline(never) private static func reachAll(
    _ wait: Wait, _ hasReachedSleepers: inout Bool, _ thread: ThreadRecord?
  ) -> Bool {
    if wait.isForUnknownThread {
      if hasReachedSleepers { return false }
      hasReachedSleepers = true
      if reachStrangers() { return true }
    }
    reach(wait)
    return thread.map { $0.search == .reached } ?? false
  }

  /// The same, as long as each wait is for one thread. It does not look at all threads then.
  ///
  /// - Returns: nil if it is not known.
  private static func closesChain(_ first: Wait, _ thread: ThreadRecord?) -> Bool? {
    if case .calls = first, let thread, first.concerns(thread) { return true }
    var (wait, steps) = (first, 0)
    while steps < 16, let next = wait.soleThread {
      if next == thread { return true }
      wait = next.currentWait
      if wait.isNothing { return false }
      steps &+= 1
    }
    return nil
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
      stranger = current.pointee.nextStranger
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
