import MulticastShims
import Synchronization

/// All records of threads, in a list that only grows.
enum ThreadRegistry {
  nonisolated(unsafe) private static let head =
    Atomic<UnsafeMutablePointer<ThreadRecord.Storage>?>(nil)
  private static let recordCount = Atomic<UInt32>(0)
  private static let threadCount = Atomic<UInt64>(0)

  /// How many threads may have records at once: their numbers fit beside a generation.
  private static let limit: UInt32 = 1 << 29

  /// Gives the calling thread a record for the rest of its life: until its destructors run. From
  /// then on nobody tells when it has ended, so what enters has to leave.
  ///
  /// - Returns: nil when out of memory.
  @inline(never) static func enter() -> ThreadRecord? {
    guard let record = takeIdle() ?? push() else { return nil }
    // While it ends this may come too late to be told, but for who ends it once more: a
    // cancellation.
    guard shims_watch_exit(record.storage) || shims_is_thread_ending() else {
      record.storage.pointee.taken.store(0, ordering: .releasing)
      return nil
    }
    let identity = threadCount.wrappingAdd(1, ordering: .relaxed).newValue
    record.storage.pointee.identity.store(identity, ordering: .relaxed)
    shims_set_thread_record(record.storage)
    return record
  }

  /// For who has entered, at the end of what it entered for.
  ///
  /// - Returns: whether it has left.
  @discardableResult
  static func leaveIfEnding(_ record: ThreadRecord) -> Bool {
    guard shims_is_thread_ending() && !record.isInside else { return false }
    _ = shims_watch_exit(nil)
    leave(record)
    return true
  }

  /// Takes the calling thread's record back. It may take one again, in a later destructor of its
  /// own.
  static func leave(_ record: ThreadRecord) {
    shims_set_thread_record(nil)
    record.storage.pointee.identity.store(0, ordering: .relaxed)
    // Release: the next owner's compare-exchange acquires it, and goes on as the same invoker.
    record.storage.pointee.taken.store(0, ordering: .releasing)
  }

  /// In the child of a fork: the other threads are gone, their records serve whoever comes.
  static func forgetOthers(
    than survivor: ThreadRecord?, _ hasLeft: (_ multicast: UInt, _ payload: UInt) -> Void
  ) {
    for record in all {
      record.storage.pointee.awaited = Awaited()
      if record == survivor { continue }
      record.clear(hasLeft)
      record.storage.pointee.identity.store(0, ordering: .relaxed)
      record.storage.pointee.taken.store(0, ordering: .releasing)
    }
  }

  /// Every record there is. One pushed later belongs to an invocation that began after the
  /// reader's fence.
  static var all: Records {
    // Acquire: pairs with the push, so that the records' contents are seen.
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

  private static func takeIdle() -> ThreadRecord? {
    for record in all where record.storage.pointee.taken.load(ordering: .relaxed) == 0 {
      let (isTaken, _) = record.storage.pointee.taken.compareExchange(
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
    record.storage.pointee.taken.store(1, ordering: .relaxed)
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
