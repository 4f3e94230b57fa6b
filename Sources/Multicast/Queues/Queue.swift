import MulticastHeader
import MulticastShims
import Synchronization

/// A queue's slot, and the basics of all its operations.
///
/// The queue's lock guards everything except the handle and the head of the ring. After a thread
/// has slept, blocked or run a call, it looks at the handle again before it uses anything else: the
/// slot may have another occupant.
struct Queue {
  struct Storage: ~Copyable {
    var header: SlotHeader
    /// The lifetime of the registrations that deliver here; none while the slot is vacant.
    var recipients: Handle
    /// The same while a thread destroys the queue; otherwise none.
    var endingRecipients: Handle

    var settings: Settings
    /// Whether a new call wakes threads that sleep until a call waits.
    var isArrivalAwaited: Bool
    /// Whether an invocation sleeps for room (backpressure), and was not woken since.
    var isRoomAwaited: Bool
    /// The end of the fast path. A call at a lower position is appended after a check of its
    /// delegate only: there is room, `highest` does not rise, and nothing must be notified.
    var fastPathEnd: UInt64
    /// Without appended calls: the ring counts these.
    var statistics: multicast_queue_stats

    /// Readable while calls wait; -1 until the first request for the descriptor.
    var descriptor: Int32
    /// Threads that sleep until a call waits, or until the worker may continue. A thread counts
    /// itself out, even if the slot has another occupant by then.
    var sleeperCount: UInt32
    let arrival: Atomic<UInt32>

    var worker: Worker
    /// Whether the loop must be notified: there is a wake function, and the queue was run since its
    /// last call.
    var needsWake: Bool
    /// Rises with each worker, so that a stop waits for its worker, not for the next.
    var workerNumber: UInt32
    /// The worker's record. The worker may have ended. Nil until it has begun.
    var workerRecord: UnsafeMutablePointer<ThreadRecord.Storage>?
    /// The worker's identity, or none. Read without the lock, too.
    let workerThread: Atomic<ThreadIdentity>
    /// The thread that ran the queue last, and is expected to make room; or none. Read without the
    /// lock, too.
    let consumer: Atomic<ThreadIdentity>
    /// The record of the thread that runs the queue, or ran it last. Its frames show whether the
    /// run goes on. That thread may have ended inside a call.
    var runner: UnsafeMutablePointer<ThreadRecord.Storage>?
    var ring: CallRing
    /// For payloads; nil if the options have none, and while the slot is vacant. Written under the
    /// lock. It is used under the lock; without, one only asks whether there is one.
    let reserve: Atomic<PayloadReserve.Address?>
  }

  typealias Wake = @convention(c) (_ context: UnsafeMutableRawPointer?) -> Void

  /// The queue's own thread.
  enum Worker: UInt8 { case none, running, stopping }

  static var pool: SlotPool { SlotPool(.queues, stride: MemoryLayout<Storage>.stride) }

  let handle: Handle
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whatever its occupant: see `isCurrent`.
  @inline(__always)
  init?(slotOf handle: Handle) {
    guard let slot = Self.pool.slot(of: handle, .queue) else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The occupant of a slot.
  init(slot: UnsafeMutableRawPointer) {
    storage = slot.assumingMemoryBound(to: Storage.self)
    handle = storage.pointee.header.id.load(ordering: .relaxed)
  }

  /// The fields of the slot, in place.
  var state: Storage {
    unsafeAddress { UnsafePointer(storage) }
    nonmutating unsafeMutableAddress { storage }
  }

  /// How many calls were queued, including calls that replaced older ones.
  var queued: UInt64 { state.ring.appended &+ state.statistics.coalesced }

  // Relaxed: everything else is read under the lock.
  var isCurrent: Bool { state.header.id.load(ordering: .relaxed) == handle }

  var lock: Lock { Lock.queues(handle.index) }

  var header: UnsafeMutablePointer<SlotHeader> {
    UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
  }

  /// The thread that is expected to run the queue.
  var consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>> { storage.pointee.consumer.address }

  /// The target of a frame that runs this queue.
  var target: Target { .run(storage) }

  /// Runs a body under the lock, if the queue still exists.
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    lock.lock()
    defer { lock.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  static func isValid(_ handle: Handle) -> Bool { Queue(slotOf: handle)?.isCurrent ?? false }

  /// The queue of a registration, or none if the queue is being destroyed.
  static func handle(of details: RegistrationDetails.Address) -> Handle {
    guard let slot = details.pointee.queue else { return .none }
    let queue = Queue(slot: slot)
    queue.lock.lock()
    defer { queue.lock.unlock() }
    return queue.isCurrent && queue.delivers(details) ? queue.handle : .none
  }

  /// The data that registrations have of their queue; nil if the queue does not exist.
  static func destination(_ handle: Handle) -> Destination? {
    guard let queue = Queue(slotOf: handle) else { return nil }
    return try? queue.withLock { () throws(Status) in
      Destination(queue: queue.storage, recipients: queue.state.recipients)
    }
  }

  // MARK: - Whether there are queues

  private static let hasStarted = Atomic<Bool>(false)

  /// Whether a queue was ever created.
  static var isInUse: Bool { hasStarted.load(ordering: .acquiring) }  // order: started

  /// Called before the first queue exists. Release: pairs with the acquire in `isInUse`.
  static func start() { hasStarted.store(true, ordering: .releasing) }  // order: started

  // MARK: - Sleeping, under the lock

  /// Can be called without the lock, too: the word stays, whatever the occupant of the slot.
  func wakeSleepers() { Lock.wakeAll(storage.pointee.arrival.address) }

  /// Sleeps until something changes, or until a moment. The lock is released meanwhile.
  ///
  /// The head is closed: a run that ends takes the lock, and wakes this thread.
  func sleep(until moment: UInt64) {
    if state.ring.count == 0 {
      state.isArrivalAwaited = true
      state.fastPathEnd = 0
    }
    state.sleeperCount &+= 1
    lock.sleep(with: storage.pointee.arrival.address, until: moment)
    state.sleeperCount &-= 1
  }

  // MARK: - Threads and processes that end

  /// Called when a thread has ended inside a run: the worker may have waited for its turn, and
  /// calls may be left.
  ///
  /// - Parameter frame: That of the run.
  static func runDidEnd(_ target: Target, _ frame: Frame, of thread: ThreadRecord) {
    let queue = Queue(slot: target.slot)
    queue.lock.lock()
    queue.state.ring.close()
    queue.wakeSleepers()
    if queue.state.runner == thread.storage { queue.state.runner = nil }
    let wake = queue.handle.kind == .queue ? queue.beginWake(frame) : nil
    queue.lock.unlock()
    if let wake { queue.callWake(wake, frame) }
  }

  /// The child of a fork has no waiting calls, and no threads that waited for the queue or ran it.
  static func restartAllInChild() {
    pool.forEach { slot, _ in Queue(slot: slot).restartInChild() }
  }

  private func restartInChild() {
    state.sleeperCount = 0
    state.isRoomAwaited = false
    state.isArrivalAwaited = false
    guard handle.kind == .queue else { return }
    renewWake()
    var released = ReleasedPayloads()
    state.statistics.dropped &+= state.ring.takeAll(&released)
    released.cleanUp()
    state.worker = .none
    if let runner = state.runner, !ThreadRecord(runner).isInside(target) { state.runner = nil }
    state.fastPathEnd = 0
    if state.descriptor >= 0 { state.descriptor = shims_event_replace(state.descriptor) }
  }
}

extension Queue {
  /// Copies the statistics of one moment.
  static func read(
    _ handle: Handle, into out: UnsafeMutablePointer<multicast_queue_stats>?
  ) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let out else { throw .invalidArgument }
    return try queue.withLock { () throws(Status) in
      var statistics = queue.state.statistics
      statistics.pending = queue.state.ring.count
      statistics.queued = queue.queued
      // Every other call that is gone was executed, or is being executed.
      let gone = statistics.dropped &+ statistics.cancelled &+ statistics.coalesced
      statistics.delivered = statistics.queued &- statistics.pending &- gone
      return StructSize.write(&statistics, to: out, smallest: StructSize.queueStats)
    }
  }
}

/// The lock is held.
extension Queue: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      let (waiting, capacity) = (state.ring.count, UInt64(state.settings.capacity))
      check.that(
        waiting <= capacity, "no more calls wait than there is room for", waiting, capacity)
      check.that(
        state.fastPathEnd == 0 || state.fastPathEnd <= state.ring.knownHead &+ capacity,
        "a call is only appended where there is room", state.fastPathEnd, state.ring.knownHead)
      state.ring.check(check)
      // The statistics of a destroyed queue cannot be read.
      guard isCurrent, handle.kind == .queue else { return }
      let statistics = state.statistics
      check.that(
        queued >= waiting &+ statistics.dropped &+ statistics.cancelled &+ statistics.coalesced,
        "the statistics add up", queued, waiting)
    }
  #endif
}
