import MulticastShims
import Synchronization

/// All thread records, in blocks. The list of blocks only grows.
enum ThreadRegistry {
  nonisolated(unsafe) private static let first =
    Atomic<UnsafeMutablePointer<ThreadBlock.Storage>?>(nil)
  private static let threadCount = Atomic<UInt64>(0)

  /// The maximum number of records. A record's number must fit into the invoker word below the
  /// generation, and must be less than `multipleInvokers`.
  private static let limit: UInt32 = 1 << 24

  /// Gives the calling thread a record, which it keeps until its thread-specific destructors run.
  /// Returns nil if memory is exhausted.
  ///
  /// After the library's destructor has run, later destructors of the program may still call the
  /// library. The library's destructor does not run again afterwards, so an operation that takes a
  /// record at this stage must also give it back (see `leaveIfEnding`).
  static func enter() -> ThreadRecord? {
    guard let record = takeIdle() ?? add() else { return nil }
    // If the thread is already ending, ignore the failure. It means only that the library's
    // destructor will not run again, which matters only if the thread is cancelled inside a call.
    guard shims_watch_exit(record.storage) || shims_is_thread_ending() else {
      record.giveBack()
      return nil
    }
    record.identity = ThreadIdentity(
      threadCount.wrappingAdd(1, ordering: .relaxed).newValue, with: record)
    record.storage.pointee.systemNumber.store(shims_get_thread_id(), ordering: .relaxed)
    shims_set_thread_record(record.storage)
    return record
  }

  /// Returns the calling thread's record, and whether the thread has received it in this call.
  @inline(never)
  static func enterIfNeeded() -> (record: ThreadRecord, hasEntered: Bool)? {
    if let record = ThreadRecord.current { return (record, false) }
    return enter().map { ($0, true) }
  }

  /// Called at the end of an operation that may have taken a record. Only the operation that has
  /// taken the record gives it back, not the operations that the caller's functions perform inside
  /// it.
  @inline(never)
  static func leaveIfEnding(_ record: ThreadRecord, _ hasEntered: Bool) {
    guard hasEntered && shims_is_thread_ending() && !record.isInside else { return }
    _ = shims_watch_exit(nil)
    leave(record)
  }

  /// Makes the calling thread give back its record. Wakes all sleeping threads, because the calling
  /// thread may have run a queue, and another thread may be waiting for it to run the queue again.
  static func leave(_ record: ThreadRecord) {
    shims_set_thread_record(nil)
    record.identity = .none
    record.giveBack()
    Waits.wake()  //~ no_wake_after_thread
  }

  /// In the child of a fork, makes the records of all other threads idle.
  static func forgetOthers(
    than survivor: ThreadRecord?, release: (_ payload: UInt, _ target: Target) -> Void,
    didLeave: (_ target: Target) -> Void
  ) {
    for record in all {
      if record == survivor {
        record.storage.pointee.systemNumber.store(shims_get_thread_id(), ordering: .relaxed)
      } else {
        record.clear(release: release, willLeave: { _, _ in }, didLeave: didLeave)
      }
      if !record.wait.isNothing { record.wait = .nothing }
    }
    for block in blocks { block.disown(but: survivor) }
  }

  /// All records that threads own. If a thread takes a record later, the record contains only
  /// frames of invocations that begin after the reader's heavy fence.
  static var all: Records { Records(block: blocks.rest) }

  struct Records: Sequence, IteratorProtocol {
    private var block: ThreadBlock?
    private var group = 0
    /// The bits of the remaining records of the group.
    private var owned: UInt64 = 0

    fileprivate init(block: ThreadBlock?) {
      var block = block
      while let current = block, !current.hasOwners { block = current.next }
      self.block = block
      if let block { owned = block.owned(0) }
    }

    @inline(never) mutating func next() -> ThreadRecord? {
      while let block {
        if owned != 0 {
          let bit = owned.trailingZeroBitCount
          owned &= owned &- 1
          return block.record(group, bit)
        }
        group &+= 1
        if group < block.groupCount {
          owned = block.owned(group)
        } else {
          self = Records(block: block.next)
        }
      }
      return nil
    }
  }

  @inline(never)
  static func isCalled(_ token: Token) -> Bool { all.contains { $0.isCalling(token) } }

  /// Whether any thread may be reading a list in an invocation of the list's multicast.
  @inline(never)
  static func isRead(_ list: UInt, by target: Target) -> Bool {
    all.contains { $0.isInside(target) { $0 == list } }
  }

  /// The record of a thread; nil if the thread no longer has one.
  @inline(never) static func record(of identity: ThreadIdentity) -> ThreadRecord? {
    for block in blocks where identity.record < block.endNumber {
      guard let record = block.ownedRecord(identity.record) else { return nil }
      return record.identity == identity ? record : nil
    }
    return nil
  }

  // MARK: - Blocks

  // Acquire: pairs with the release in `addBlock`.
  private static var blocks: ThreadBlock.List {
    // order: block
    ThreadBlock.List(rest: first.load(ordering: .acquiring).map { ThreadBlock($0) })
  }

  /// Calls `ThreadBlock.discardIdle` for all blocks. The caller holds the slab lock.
  static func discardIdle() -> Int {
    var bytes = 0
    for block in blocks { bytes &+= block.discardIdle() }
    return bytes
  }

  private static func takeIdle() -> ThreadRecord? {
    for block in blocks { if let record = block.takeIdle() { return record } }
    return nil
  }

  private static func add() -> ThreadRecord? {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    do throws(Status) {
      var last: ThreadBlock? = nil
      for block in blocks {
        if let record = try block.add() { return record }
        last = block
      }
      return try addBlock(after: last).add()
    } catch {
      return nil
    }
  }

  private static func addBlock(after last: ThreadBlock?) throws(Status) -> ThreadBlock {
    if let last, last.endNumber >= limit { throw .limit }
    let block = try ThreadBlock.allocate(after: last)
    if let last {
      last.link(block)
    } else {
      first.store(block.storage, ordering: .releasing)  // order: block
    }
    return block
  }
}
