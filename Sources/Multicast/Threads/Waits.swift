import MulticastShims
import Synchronization

/// The wait graph: the wait of each sleeping thread, and the search for cycles.
///
/// A sleeping thread has published its wait, and cannot change its calls. The waits' lock guards
/// the graph. The lock also orders a change with its wake-up: a thread looks, and goes to sleep,
/// under one hold of the lock, so no wake-up is lost.
enum Waits {
  /// Sleeping threads without a record: they are outside all calls.
  nonisolated(unsafe) private(set) static var firstUnregistered: UnsafeMutablePointer<Sleeper>? =
    nil

  /// The key of waits for calls of one of several registrations.
  static let anyCall: Sleeper.Key = 1

  /// Rises whenever the threads that can end waits may have changed. Each sleeping thread then
  /// searches for a cycle once more.
  nonisolated(unsafe) private static var generation: UInt64 = 0

  nonisolated(unsafe) private(set) static var sleeperCount = 0
  /// The number of these that sleep for one thread, in a call or not.
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
  /// - Returns: `ok`; `pending`, if the other thread waits for this thread, directly or through
  ///   others; or `timeout`.
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

  /// Whether a thread has to search for a cycle before it sleeps. If a wait is published again
  /// under the same hold of the lock, the threads that sleep later search it. But from the wake-up
  /// of a thread with its key until the thread runs again, a search passes the thread over, since
  /// its wait may have ended, and notes that. Otherwise a thread that has ended the wait, and now
  /// waits for the call of the woken thread, would find a cycle.
  enum SearchNeeded { case begins, again, no }

  /// Waits for a condition that release functions bring about, on any threads. For a thread that is
  /// outside all calls and releases.
  ///
  /// - Returns: `ok`; `pending`, if a thread may wait for this thread nevertheless, to run a queue;
  ///   or `timeout`.
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

  /// Whether a thread waits for this thread, or for a queue that only this thread may run.
  private static func mayBeAwaited(_ thread: ThreadRecord?) -> Bool {
    ThreadRegistry.all.contains {
      let wait = $0.currentWait
      if wait.isForQueue && wait.isForUnknownThread { return true }
      guard let thread else { return false }
      return wait.isForThread && wait.concerns(thread)
    }
  }

  /// Makes all sleeping threads look again, and search for cycles again, after a change of the
  /// threads that can end waits.
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

  /// Makes the thread look again that has slept longest with a key.
  ///
  /// - Parameter none: Called under the lock if no other thread sleeps with the key.
  static func wakeOne(_ key: Sleeper.Key, _ none: () -> Void) {
    Lock.waits.lock()
    let sleeper = Sleeper.find(key, from: Sleeper.first(Sleeper.list(of: key)))
    // Woken without the lock, since the woken thread takes the lock first. By then that thread may
    // have gone on, and the word may be another's: sleeping threads check their word.
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
  /// - Parameter isAgain: Whether the thread was woken in vain: then it sleeps before the others.
  /// - Returns: whether to search for a cycle before the next sleep.
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

  /// The wait of a thread without a record.
  ///
  /// - Parameter place: How many threads come before in the list.
  static func unregisteredWaiter(at place: Int) -> UnsafeMutablePointer<Sleeper>? {
    var (waiter, left) = (firstUnregistered, place)
    while left > 0 {
      waiter = waiter?.pointee.nextUnregistered
      left &-= 1
    }
    return waiter
  }

  private static func link(_ waiter: UnsafeMutablePointer<Sleeper>) {
    waiter.pointee.nextUnregistered = firstUnregistered
    firstUnregistered = waiter
  }

  private static func unlink(_ waiter: UnsafeMutablePointer<Sleeper>) {
    if firstUnregistered == waiter {
      firstUnregistered = waiter.pointee.nextUnregistered
      return
    }
    var other = firstUnregistered
    while let current = other {
      let next = current.pointee.nextUnregistered
      if next == waiter { current.pointee.nextUnregistered = waiter.pointee.nextUnregistered }
      other = next
    }
  }

  static func wakeSleepers() {
    generation &+= 1
    if sleeperCount == 0 { return }
    for index in 0..<Int(SHIMS_SLEEPER_LISTS) {
      while let sleeper = Sleeper.first(shims_get_sleepers(index)) { wake(sleeper) }
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
    firstUnregistered = nil
    Sleeper.forgetAllInChild()
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
