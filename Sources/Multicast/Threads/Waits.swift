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

  /// Waits for a condition that another thread brings about.
  ///
  /// - Parameter key: That of the wait, if it has none itself.
  /// - Returns: `ok`; `pending`, if the other thread waits for this thread, directly or through
  ///   others; or `timeout`.
  @discardableResult @inline(never) static func sleep(
    for wait: Wait, with key: Sleeper.Key = 0, _ timeout: Timeout = .unlimited,
    until isTrue: () -> Bool
  ) -> Status {
    Lock.waits.lock()
    defer { Lock.waits.unlock() }
    var search = SearchNeeded.begins
    while !isTrue() {
      if search != .no && closesCycle(wait) { return .pending }  //~ cycle_of_waits_not_found
      if timeout.isOver { return .timeout }
      search = sleep(for: wait, key | wait.key, timeout, isAgain: search != .begins)
    }
    return .ok
  }

  /// Whether a thread has to search for a cycle before it sleeps. If a wait is published again
  /// under the same hold of the lock, the threads that sleep later search it. But from the wake-up
  /// of a thread with its key until the thread runs again, a search passes the thread over, since
  /// its wait may have ended, and notes that. Otherwise a thread that has ended the wait, and now
  /// waits for the call of the woken thread, would find a cycle.
  enum SearchNeeded { case begins, again, no }

  /// Makes the threads look again that sleep with a key.
  ///
  /// - Parameters:
  ///   - key: nil: all threads look, and search for cycles again, after a change of the threads
  ///     that can end waits.
  ///   - change: Made under the lock, for a change that the lock has to guard.
  static func wake(_ key: Sleeper.Key? = nil, _ change: () -> Void = {}) {
    Lock.waits.lock()
    change()
    if let key { wakeSleepers(key) } else { wakeSleepers() }
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
        sleeper.pointee.next = firstUnregistered
        firstUnregistered = sleeper
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
      if let thread { thread.wait = .nothing } else { sleeper.unlink(from: &firstUnregistered) }
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
      waiter = waiter?.pointee.next
      left &-= 1
    }
    return waiter
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
        "a thread that sleeps for a thread is counted as sleeping", threadSleeperCount,
        sleeperCount)
    #endif
  }
}
