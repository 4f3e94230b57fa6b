/// The search for a cycle of waits. The waits' lock is held.
extension Waits {
  /// How far the search has come with a thread.
  enum Search: UInt8 { case unknown, reached, followed }

  /// Whether the threads that can end this wait wait for this thread, directly or through others.
  ///
  /// This is a breadth-first search over the sleeping threads. It begins with the threads that can
  /// end `first`, and follows the wait of each of them. If the search reaches this thread, the wait
  /// would close a cycle.
  ///
  /// The search may reach a wait for a queue whose consumer is not known. Then any thread may be
  /// the consumer, this thread too, so the wait counts as a cycle. There is one exception: `first`
  /// is itself a wait for a queue. This thread is then not expected to run the other queue: no
  /// thread has run that queue, and this thread goes to sleep. Each sleeping thread may be the
  /// consumer, so the search continues with all of them.
  ///
  /// A thread that goes to sleep later makes the same search, and finds this wait published. A
  /// thread outside all calls delays no other thread, except a thread that waits for the run of a
  /// queue.
  @inline(never) static func closesCycle(_ first: Wait) -> Bool {
    let thread = ThreadRecord.current
    if first.isForReleases { return threadSleeperCount > 0 && mayBeAwaited(thread) }
    let isInside = thread?.isInside ?? false
    // A thread outside all calls may be the consumer of a queue.
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

  /// For a thread that waits for release functions, on any threads, and is outside all calls and
  /// releases: whether a thread waits for it nevertheless, or for a queue that only it may run.
  private static func mayBeAwaited(_ thread: ThreadRecord?) -> Bool {
    ThreadRegistry.all.contains {
      let wait = $0.currentWait
      if wait.isForQueue && wait.isForUnknownThread { return true }
      guard let thread else { return false }
      return wait.isForThread && wait.concerns(thread)
    }
  }

  /// Marks the threads that a wait needs: all sleeping threads, if the needed thread is not known.
  ///
  /// - Parameter hasReachedSleepers: Whether all sleeping threads were marked before.
  /// - Returns: whether this thread is one of them.
  @inline(never) private static func reachAll(
    _ wait: Wait, _ hasReachedSleepers: inout Bool, _ thread: ThreadRecord?
  ) -> Bool {
    if wait.isForUnknownThread {
      if hasReachedSleepers { return false }
      hasReachedSleepers = true
      if reachUnregistered() { return true }
    }
    reach(wait)
    return thread.map { $0.search == .reached } ?? false
  }

  /// The same, as long as each wait is for one thread. Then the search does not look at all
  /// threads.
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
  private static func reachUnregistered() -> Bool {
    var waiter = firstUnregistered
    while let current = waiter {
      if current.pointee.wait.isForReleases { return true }
      reach(current.pointee.wait)
      waiter = current.pointee.next
    }
    return false
  }
}

extension ThreadRecord {
  /// The wait of the thread, for a search; nothing if the thread was woken with its key and only
  /// has to run again. If the thread was woken in vain, it searches itself, since this search
  /// passes it over.
  @inline(never) var currentWait: Wait {
    if storage.pointee.isWoken {  //~ woken_is_followed
      storage.pointee.isPassedOver = true  //~ not_searched_after_passed_over
      return .nothing
    }
    if case .run(let calls) = wait, calls.areOver { return .nothing }
    return wait
  }
}
