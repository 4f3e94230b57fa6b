import MulticastShims
import Synchronization

/// All records of threads, in a list that only grows.
enum ThreadRegistry {
  nonisolated(unsafe) private static let head =
    Atomic<UnsafeMutablePointer<ThreadRecord.Storage>?>(nil)
  private static let recordCount = Atomic<UInt32>(0)

  /// How many threads may have records at once: their numbers fit beside a generation.
  private static let limit: UInt32 = 1 << 29

  /// Gives the calling thread a record for the rest of its life.
  ///
  /// - Returns: nil when out of memory.
  @inline(never) static func enter() -> ThreadRecord? {
    guard let record = takeIdle() ?? push() else { return nil }
    guard shims_watch_exit(record.storage) else {
      record.storage.pointee.taken.store(0, ordering: .releasing)
      return nil
    }
    shims_set_thread_record(record.storage)
    return record
  }

  /// Takes the calling thread's record back. It may take one again, in a later destructor of its own.
  static func leave(_ record: ThreadRecord) {
    shims_set_thread_record(nil)
    // Release: the next owner's compare-exchange acquires it, and goes on as the same invoker.
    record.storage.pointee.taken.store(0, ordering: .releasing)
  }

  /// In the child of a fork: the other threads are gone, their records serve whoever comes.
  static func forgetOthers(than survivor: ThreadRecord?) {
    forEach { record in
      record.storage.pointee.awaited = 0
      if record == survivor { return }
      record.clear()
      record.storage.pointee.taken.store(0, ordering: .releasing)
    }
  }

  @inline(__always) static func forEach(_ body: (ThreadRecord) -> Void) {
    _ = contains { record in
      body(record)
      return false
    }
  }

  @inline(__always) static func contains(where predicate: (ThreadRecord) -> Bool) -> Bool {
    // Acquire: pairs with the push, so that the record's contents are seen. A record pushed later
    // belongs to an invocation that began after the caller's fence.
    var next = head.load(ordering: .acquiring)
    while let storage = next {
      if predicate(ThreadRecord(storage)) { return true }
      next = storage.pointee.next
    }
    return false
  }

  private static func takeIdle() -> ThreadRecord? {
    var taken: ThreadRecord? = nil
    _ = contains { record in
      guard record.storage.pointee.taken.load(ordering: .relaxed) == 0 else { return false }
      let (exchanged, _) = record.storage.pointee.taken.compareExchange(
        expected: 0, desired: 1, ordering: .acquiring)  // pairs with the release in `leave`
      if exchanged { taken = record }
      return exchanged
    }
    return taken
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
