import MulticastShims
import Synchronization

/// All thread records, in a list that only grows.
enum ThreadRegistry {
  nonisolated(unsafe) private static let head =
    Atomic<UnsafeMutablePointer<ThreadRecord.Storage>?>(nil)
  private static let recordCount = Atomic<UInt32>(0)
  private static let threadCount = Atomic<UInt64>(0)

  /// The most records: their numbers have to fit beside a generation.
  private static let limit: UInt32 = 1 << 29

  /// Gives the calling thread a record until its destructors run.
  ///
  /// Later destructors of the program may still call the library. No destructor of the library runs
  /// after them: a thread that enters then has to leave again.
  ///
  /// - Returns: nil if out of memory.
  @inline(never) static func enter() -> ThreadRecord? {
    guard let record = takeIdle() ?? push() else { return nil }
    // A thread that is ending is not watched reliably. That matters only if it ends once more,
    // inside a call, because it is cancelled.
    guard shims_watch_exit(record.storage) || shims_is_thread_ending() else {
      record.storage.pointee.isOwned.store(0, ordering: .releasing)
      return nil
    }
    record.identity = ThreadIdentity(
      rawValue: threadCount.wrappingAdd(1, ordering: .relaxed).newValue)
    shims_set_thread_record(record.storage)
    return record
  }

  /// Called by a thread that has entered, at the end of what it entered for.
  ///
  /// - Returns: whether it has left.
  @discardableResult
  static func leaveIfEnding(_ record: ThreadRecord) -> Bool {
    guard shims_is_thread_ending() && !record.isInside else { return false }
    _ = shims_watch_exit(nil)
    leave(record)
    return true
  }

  /// Takes back the record of the calling thread.
  static func leave(_ record: ThreadRecord) {
    shims_set_thread_record(nil)
    record.identity = .none
    // Release: the next owner's compare-exchange acquires it, and continues as the same invoker.
    record.storage.pointee.isOwned.store(0, ordering: .releasing)
  }

  /// In the child of a fork: the other threads do not exist, so their records are idle.
  static func forgetOthers(
    than survivor: ThreadRecord?, _ didLeave: (_ target: Target, _ payload: UInt) -> Void
  ) {
    for record in all {
      record.wait = .nothing
      if record == survivor { continue }
      record.clear(didLeave)
      record.identity = .none
      record.storage.pointee.isOwned.store(0, ordering: .releasing)
    }
  }

  /// Every record. One that is pushed later belongs to an invocation that begins after the reader's
  /// heavy fence.
  static var all: Records {
    // Acquire: pairs with the push, so that the contents of the records are seen.
    Records(rest: head.load(ordering: .acquiring))
  }

  struct Records: Sequence, IteratorProtocol {
    fileprivate var rest: UnsafeMutablePointer<ThreadRecord.Storage>?

    @inline(__always) mutating func next() -> ThreadRecord? {
      guard let storage = rest else { return nil }
      rest = storage.pointee.next
      return ThreadRecord(storage)
    }
  }

  /// Whether any thread is in a call of this registration's delegate.
  static func isCalled(_ token: Token) -> Bool { all.contains { $0.isCalling(token) } }

  private static func takeIdle() -> ThreadRecord? {
    for record in all where record.storage.pointee.isOwned.load(ordering: .relaxed) == 0 {
      let (isTaken, _) = record.storage.pointee.isOwned.compareExchange(
        expected: 0, desired: 1, ordering: .acquiring)  // pairs with the release in `leave`
      if isTaken { return record }
    }
    return nil
  }

  private static func push() -> ThreadRecord? {
    guard let record = ThreadRecord.allocate() else { return nil }
    let number = recordCount.wrappingAdd(1, ordering: .relaxed).newValue
    guard number < limit else {
      record.deallocate()
      return nil
    }
    record.storage.pointee.number = number
    record.storage.pointee.isOwned.store(1, ordering: .relaxed)  //~ record_not_owned
    var next = head.load(ordering: .relaxed)
    while true {
      record.storage.pointee.next = next
      let (exchanged, current) = head.compareExchange(
        expected: next, desired: record.storage, successOrdering: .releasing,
        failureOrdering: .relaxed)
      if exchanged { return record }
      next = current
    }
  }
}
