import CMulticast
import MulticastShims
import Synchronization

/// A queue's slot, and the basics that all of its operations share.
///
/// Everything but the handle is guarded by the queue's lock. A thread that has slept, blocked or
/// run a call looks at the handle again before it touches anything else: the slot may have another
/// inhabitant.
struct Queue {
  struct Storage: ~Copyable {
    var header: SlotHeader
    /// The handle of the lifetime of the registrations that deliver here; 0 when nobody lives here.
    var recipients: UInt64

    var ring: CallRing
    var capacity: UInt32
    var overflow: multicast_overflow
    var statistics: Statistics

    /// Readable while calls wait; -1 while nobody has asked for it.
    var descriptor: Int32
    /// Whether `arrival` can be used; it stays so.
    var isPrepared: Bool
    /// Threads that sleep until a call waits, or the worker may go on. They count themselves out,
    /// also when the slot has another inhabitant by then.
    var sleepers: UInt32
    /// Threads that wait for room; likewise.
    var blocked: UInt32
    var arrival: pthread_cond_t

    var worker: Worker
    /// Rises with each worker, so that who waits for one to stop does not wait for the next.
    var workerNumber: UInt32
    /// Its record, of which it may have ended; nil until it has begun.
    var workerRecord: UnsafeMutablePointer<ThreadRecord.Storage>?
    /// Its identity, or 0; like the next one also read without the lock.
    let workerThread: Atomic<UInt64>
    /// The identity of the thread that ran the queue last, of whom room is expected; or 0.
    let consumer: Atomic<UInt64>
    /// The record of the thread that runs the queue, which may have ended inside of a call.
    var runner: UnsafeMutablePointer<ThreadRecord.Storage>?
  }

  struct Statistics {
    var queued: UInt64 = 0
    var delivered: UInt64 = 0
    var refused: UInt64 = 0
    var dropped: UInt64 = 0
    var retracted: UInt64 = 0
    var coalesced: UInt64 = 0
    var highest: UInt64 = 0
  }

  /// The queue's own thread.
  enum Worker: UInt8 { case none, running, stopping }

  nonisolated(unsafe) static var pool = SlotPool()  // guarded by the slab lock

  @inline(__always) static var directory: SlabDirectory {
    SlabDirectory(
      shims_get_queue_directory().unsafelyUnwrapped, stride: MemoryLayout<Storage>.stride)
  }

  let handle: UInt64
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whoever lives there: `isCurrent` tells.
  init?(slotOf handle: UInt64) {
    guard Handle.kind(of: handle) == Handle.Kind.queue,
      let slot = Self.directory.slot(Handle.index(of: handle))
    else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// Whoever lives in a slot.
  init(slot: UnsafeMutableRawPointer) {
    storage = slot.assumingMemoryBound(to: Storage.self)
    handle = storage.pointee.header.id.load(ordering: .relaxed)
  }

  // Relaxed: what it guards is read under the lock.
  var isCurrent: Bool { storage.pointee.header.id.load(ordering: .relaxed) == handle }
  var lock: Lock { Lock.queues(Handle.index(of: handle)) }

  /// What frames name a run of it by.
  var address: UInt { UInt(bitPattern: storage) | 1 }

  /// Runs a body under the lock, if the queue still exists.
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    lock.lock()
    defer { lock.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  /// Where registrations deliver to that name a queue; nil where it is none.
  static func destination(_ handle: UInt64) -> Destination? {
    guard let queue = Queue(slotOf: handle) else { return nil }
    queue.lock.lock()
    defer { queue.lock.unlock() }
    guard queue.isCurrent else { return nil }
    return Destination(queue: queue.storage, recipients: queue.storage.pointee.recipients)
  }

  // MARK: - Under the lock

  /// Called when calls were taken in or out.
  ///
  /// - Parameter before: How many waited before.
  func changed(from before: UInt64) {
    guard storage.pointee.descriptor >= 0 else { return }
    let now = storage.pointee.ring.count
    if before == 0 && now > 0 { shims_event_set(storage.pointee.descriptor) }
    if before > 0 && now == 0 { shims_event_clear(storage.pointee.descriptor) }
  }

  /// Also without the lock: the condition stays, whoever lives here.
  func wakeSleepers() { shims_wake_all(&storage.pointee.arrival) }

  /// Sleeps until something has changed, or until a moment; the lock is given up meanwhile.
  func sleep(until moment: UInt64) {
    lock.checkBeforeSleeping()
    storage.pointee.sleepers &+= 1
    shims_sleep(&storage.pointee.arrival, lock.mutex, moment)
    storage.pointee.sleepers &-= 1
  }
}

extension Options {
  /// A caller's options, with the queue looked up; nil where they cannot be read.
  static func read(_ given: UnsafePointer<multicast_options>?) -> Options? {
    guard var options = Options(given) else { return nil }
    if options.queue != 0 { options.destination = Queue.destination(options.queue) }
    return options
  }
}
