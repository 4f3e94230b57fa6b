import MulticastShims
import Synchronization

/// The wait graph: the wait of each sleeping thread, and the search for cycles.
///
/// A sleeping thread has published its wait and cannot change its calls. The waits' lock guards the
/// graph. It also prevents lost wake-ups, because a thread holds the lock from the check of its
/// condition until it is registered as sleeping.
enum Waits {
  /// The first sleeping thread without a record. Threads without a record are outside all calls.
  nonisolated(unsafe) private(set) static var firstUnregistered: UnsafeMutablePointer<Sleeper>? =
    nil

  /// The key of a wait for running calls to the delegates of several registrations.
  static let anyCall: Sleeper.Key = 1

  /// Incremented whenever the set of threads that can end waits may have changed. Each sleeping
  /// thread then searches for a cycle again.
  nonisolated(unsafe) private static var generation: UInt64 = 0

  nonisolated(unsafe) private(set) static var sleeperCount = 0
  /// The number of sleeping threads whose waits satisfy `Wait.isForThread`.
  nonisolated(unsafe) private(set) static var threadSleeperCount = 0

  // MARK: - Sleeping

  /// Waits until another thread makes a condition true.
  ///
  /// - Parameter key: The key to sleep on if `wait` itself has no key.
  /// - Returns: `ok`; `timeout`; or `pending` if the threads that can make the condition true are
  ///   waiting for this thread, directly or through other threads.
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

  /// Whether a thread has to search for a cycle before it sleeps. The thread searches when its wait
  /// begins, and again when the set of threads that can end waits may have changed.
  ///
  /// A thread that has been woken spuriously withdraws its wait and publishes it again in one
  /// critical section. Threads that go to sleep later find the wait in their own searches, so this
  /// thread need not search again, with one exception.
  ///
  /// The exception is a thread that has been woken through its key but has not run yet. Its wait
  /// may have ended, so other threads' searches ignore the wait and note this in the thread's
  /// record. The thread then searches before it sleeps again. If searches did not ignore the wait,
  /// they would find cycles that do not exist. For instance, thread A ends the wait of thread B,
  /// and then waits for a call that B is in. B's wait is over, but it is still in the graph, and
  /// leads the search back to A.
  enum SearchNeeded { case begins, again, no }

  /// Makes a change under the lock, and wakes the threads sleeping on a key, which then check their
  /// conditions again. If the key is nil, wakes all threads, which then also search for cycles
  /// again. Pass nil when the set of threads that can end waits has changed.
  static func wake(_ key: Sleeper.Key? = nil, _ change: () -> Void = {}) {
    Lock.waits.lock()
    change()
    if let key { wakeSleepers(key) } else { wakeSleepers() }
    Lock.waits.unlock()
  }

  /// Wakes the thread that has been sleeping on a key the longest. If no other thread is sleeping
  /// on the key, calls `none` under the lock.
  static func wakeOne(_ key: Sleeper.Key, _ none: () -> Void) {
    Lock.waits.lock()
    let sleeper = Sleeper.find(key, from: Sleeper.first(Sleeper.list(of: key)))
    // Wake the thread after releasing the lock, because the woken thread begins by taking the lock.
    // By then, that thread may already have returned, and another sleeping thread may use the same
    // address for its word. The other thread then wakes up spuriously, checks its word, and sleeps
    // again.
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

  /// Releases the lock, sleeps until this thread is woken or the timeout has expired, and takes the
  /// lock again.
  ///
  /// - Parameter isAgain: Whether the thread has been woken spuriously (see `Sleeper.link`).
  @inline(never) static func sleep(
    for wait: Wait, _ key: Sleeper.Key, _ timeout: Timeout, isAgain: Bool = false
  ) -> SearchNeeded {
    Lock.waits.checkBeforeSleeping()
    // Get the record each time, because a release function that ran on this thread may have used
    // the library, and thus given the thread a record.
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

  /// A sleeping thread without a record. `place` is the number of such threads that precede it.
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

  /// Resets the wait graph in the child of a fork, in which the sleeping threads do not exist.
  static func forgetSleepersInChild() {
    sleeperCount = 0
    threadSleeperCount = 0
    firstUnregistered = nil
    Sleeper.forgetAllInChild()
  }

  /// The caller holds the lock.
  static func checkInvariants(_ check: Check) {
    #if MULTICAST_INTERNAL_CHECKS
      check.that(
        threadSleeperCount >= 0 && threadSleeperCount <= sleeperCount,
        "a thread that sleeps for a thread is counted as sleeping", threadSleeperCount,
        sleeperCount)
    #endif
  }
}

/// The search for a cycle of waits. The caller holds the waits' lock.
extension Waits {
  enum Search: UInt8 { case unknown, reached, followed }

  /// Whether the threads that can end the wait `first` are waiting for this thread, directly or
  /// through other threads.
  ///
  /// This is a breadth-first search over the sleeping threads. It begins with the threads that can
  /// end `first`, and follows the wait of each thread that it reaches. If it reaches this thread,
  /// the wait would close a cycle.
  ///
  /// The search may reach a wait for a queue whose consumer is not known. Any thread may be that
  /// consumer, including this thread, so the wait counts as a cycle. There is one exception. If
  /// `first` is itself a wait for a queue, this thread is not expected to run the reached queue,
  /// because no thread has run that queue and this thread is about to sleep. The consumer may then
  /// be any sleeping thread, so the search continues with all sleeping threads.
  ///
  /// A thread that goes to sleep later makes the same search, and finds this wait published. Other
  /// threads can be waiting for a thread outside all calls only because they expect it to run a
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

  /// Called when this thread is about to wait for release functions, outside all calls and release
  /// functions. Returns whether another thread is waiting for this thread, or for a queue that
  /// perhaps only this thread will run.
  private static func mayBeAwaited(_ thread: ThreadRecord?) -> Bool {
    ThreadRegistry.all.contains {
      let wait = $0.currentWait
      if wait.isForQueue && wait.isForUnknownThread { return true }
      guard let thread else { return false }
      return wait.isForThread && wait.concerns(thread)
    }
  }

  /// Marks the threads that can end a wait. If these threads are not known, marks all sleeping
  /// threads.
  ///
  /// - Returns: whether this thread is, or may be, one of the marked threads.
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

  /// The fast path of the search, for chains in which each wait is for a single known thread.
  /// Unlike the full search, it does not visit all threads. Returns nil if the result is not known.
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

  private static func reach(_ wait: Wait) {
    let isForUnknownThread = wait.isForUnknownThread
    for record in ThreadRegistry.all where record.search == .unknown {
      let isAsleep = !record.currentWait.isNothing
      if isForUnknownThread ? isAsleep : wait.concerns(record) { record.search = .reached }
    }
  }

  /// Marks the threads that can end the waits of threads without records. Returns whether one of
  /// these waits is for release functions, which may run on any thread.
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
  /// The thread's wait, as a search sees it. If the thread has been woken through its key but has
  /// not run yet, the result is `nothing`, so the search skips the thread. If the thread has to
  /// sleep again, it first makes its own search.
  @inline(never) var currentWait: Wait {
    if storage.pointee.isWoken {  //~ woken_is_followed
      storage.pointee.isPassedOver = true  //~ not_searched_after_passed_over
      return .nothing
    }
    if case .run(let calls) = wait, calls.areOver { return .nothing }
    return wait
  }
}

/// A sleeping thread in the wait graph. The struct is stored on that thread's stack, and linked
/// into a list of sleeping threads whose keys have the same hash. The waits' lock guards the
/// struct.
///
/// A thread that makes the condition of a wait true wakes the threads sleeping on the wait's key. A
/// thread that changes which threads can end waits wakes all sleeping threads (see `Waits.wake`).
struct Sleeper: ~Copyable, Linked {
  /// The key of a wait, which is an address or a handle.
  typealias Key = UInt64

  let wait: Wait
  let key: Key
  /// The record of the thread, if it has one.
  private let thread: UnsafeMutablePointer<ThreadRecord.Storage>?
  /// The system's number for the thread, and the time when the thread went to sleep. If the thread
  /// has no record, reports use these two fields.
  let systemNumber: UInt32
  let since: UInt64
  /// 0 until the thread is woken. The links below are in use only while this field is 0.
  let isWoken = Atomic<UInt32>(0)
  private var nextOfList: UnsafeMutablePointer<Sleeper>?
  private var previousOfList: UnsafeMutablePointer<Sleeper>?
  /// The next sleeping thread without a record, if this thread has no record either.
  var next: UnsafeMutablePointer<Sleeper>?

  init(wait: Wait, key: Key, since: UInt64, by thread: ThreadRecord?) {
    self.wait = wait
    self.key = key
    self.since = since
    self.thread = thread?.storage
    systemNumber = thread == nil ? shims_get_thread_id() : 0
  }

  typealias List = UnsafeMutablePointer<shims_sleepers>

  static func list(of key: Key) -> List {
    let hash = key &* 0x9E37_79B9_7F4A_7C15 >> 32
    return shims_get_sleepers(Int(truncatingIfNeeded: hash) & (Int(SHIMS_SLEEPER_LISTS) - 1))
  }

  static func first(_ list: List) -> UnsafeMutablePointer<Sleeper>? {
    list.pointee.first?.assumingMemoryBound(to: Sleeper.self)
  }

  /// The first thread sleeping on a key, at or after a given thread in the key's list.
  static func find(
    _ key: Key, from first: UnsafeMutablePointer<Sleeper>?
  ) -> UnsafeMutablePointer<Sleeper>? {
    var sleeper = first
    while let current = sleeper, current.pointee.key != key { sleeper = current.pointee.nextOfList }
    return sleeper
  }

  /// Appends a thread to its list, or inserts the thread at the front if it was woken spuriously.
  static func link(_ sleeper: UnsafeMutablePointer<Sleeper>, isAgain: Bool) {
    let list = list(of: sleeper.pointee.key)
    let last = list.pointee.last?.assumingMemoryBound(to: Sleeper.self)
    let (previous, next) = isAgain ? (nil, first(list)) : (last, nil)
    connect(previous, sleeper, in: list)
    connect(sleeper, next, in: list)
  }

  /// Links two neighbours in a list. If one of them is nil, the other becomes an end of the list.
  private static func connect(
    _ previous: UnsafeMutablePointer<Sleeper>?, _ next: UnsafeMutablePointer<Sleeper>?,
    in list: List
  ) {
    if let previous {
      previous.pointee.nextOfList = next
    } else {
      list.pointee.first = UnsafeMutableRawPointer(next)
    }
    if let next {
      next.pointee.previousOfList = previous
    } else {
      list.pointee.last = UnsafeMutableRawPointer(previous)
    }
  }

  static func noteWoken(_ sleeper: UnsafeMutablePointer<Sleeper>) {
    sleeper.pointee.thread?.pointee.isWoken = true
  }

  /// Removes a thread from its list, which ends its sleep. Returns the next thread of the list.
  @discardableResult
  static func unlink(
    _ sleeper: UnsafeMutablePointer<Sleeper>
  ) -> UnsafeMutablePointer<Sleeper>? {
    let list = list(of: sleeper.pointee.key)
    let next = sleeper.pointee.nextOfList
    connect(sleeper.pointee.previousOfList, next, in: list)
    // Release: pairs with the acquire in `Waits.sleep`, where the thread reads this field without
    // the lock.
    sleeper.pointee.isWoken.store(1, ordering: .releasing)  // order: woken
    return next
  }

  static func word(of sleeper: UnsafeMutablePointer<Sleeper>) -> UnsafeMutablePointer<UInt32> {
    UnsafeMutableRawPointer(sleeper.pointee.isWoken.address).assumingMemoryBound(to: UInt32.self)
  }

  static func forgetAllInChild() {
    for index in 0..<Int(SHIMS_SLEEPER_LISTS) {
      shims_get_sleepers(index).pointee = shims_sleepers()
    }
  }
}

protocol Linked: ~Copyable {
  var next: UnsafeMutablePointer<Self>? { get set }
}

extension UnsafeMutablePointer where Pointee: Linked & ~Copyable {
  /// The first matching element at or after this element.
  func first(where isWanted: (Self) -> Bool) -> Self? {
    var next: Self? = self
    while let current = next, !isWanted(current) { next = current.pointee.next }
    return next
  }

  /// Removes this element from the list that starts with `first`, if it is in that list.
  func unlink(from first: inout Self?) {
    if first == self { return first = pointee.next }
    var other = first
    while let current = other {
      if current.pointee.next == self { current.pointee.next = pointee.next }
      other = current.pointee.next
    }
  }
}

extension Atomic {
  /// The address of an atomic variable that does not move, such as a variable in a slot, a record
  /// or a block.
  var address: UnsafeMutablePointer<Self> {
    withUnsafePointer(to: self) { UnsafeMutablePointer(mutating: $0) }
  }
}
