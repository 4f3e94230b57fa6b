import MulticastHeader
import MulticastShims
import Synchronization

/// A queue's slot, and the basic operations on it.
///
/// The queue's lock guards everything except the handle and the head of the ring. After a thread
/// has slept, blocked or made a call, it checks the handle again before it uses any other field,
/// because the slot may have been reused.
struct Queue {
  struct Storage: ~Copyable {
    var header: SlotHeader
    /// The lifetime of the registrations that deliver to this queue, or `.none` if the slot is
    /// vacant.
    var recipients: Handle
    /// The previous value of `recipients` while a thread is destroying the queue, otherwise
    /// `.none`.
    var endingRecipients: Handle

    var settings: Settings
    /// Whether threads are sleeping until a call arrives. The next call must wake them.
    var isArrivalAwaited: Bool
    /// Whether an invocation is waiting for room (backpressure) and has not been woken yet.
    var isRoomAwaited: Bool
    /// The first position at which a call can no longer take the fast path. At lower positions,
    /// there is room, `highest` does not rise, and nobody has to be notified. So only a call's
    /// delegate is checked before the call is appended at such a position.
    var fastPathEnd: UInt64
    /// All statistics except the number of appended calls, which the ring counts.
    var statistics: multicast_queue_stats

    /// A descriptor that is readable while calls are waiting, or -1 until it is first requested.
    var descriptor: Int32
    /// The number of threads sleeping until a call is waiting or until the worker may continue. A
    /// thread that wakes up subtracts itself even if the slot has been reused.
    var sleeperCount: UInt32
    let arrival: Atomic<UInt32>

    var worker: Worker
    /// Whether the program's event loop has to be notified of the next call. True if the queue has
    /// a wake function and has run since that function was last called.
    var needsWake: Bool
    /// The number of the newest worker. A thread that stops a worker remembers this number, so that
    /// it does not wait for a later worker.
    var workerNumber: UInt32
    /// The worker's record, or nil before the worker has begun. The worker may already have ended.
    var workerRecord: UnsafeMutablePointer<ThreadRecord.Storage>?
    /// The worker's identity, or `.none`. Threads may read it without the lock.
    let workerThread: Atomic<ThreadIdentity>
    /// The thread that ran the queue last and is expected to make room, or `.none`. Threads may
    /// read it without the lock.
    let consumer: Atomic<ThreadIdentity>
    /// The record of the thread that is running the queue or ran it last. The record's frames show
    /// whether the run is still in progress. The thread may have ended inside a call.
    var runner: UnsafeMutablePointer<ThreadRecord.Storage>?
    var ring: CallRing
    /// Memory for payloads, or nil if the slot is vacant or the options do not request a reserve.
    /// The field is set and used under the lock. Without the lock, threads only check whether it is
    /// nil.
    let reserve: Atomic<PayloadReserve.Address?>
  }

  typealias Wake = @convention(c) (_ context: UnsafeMutableRawPointer?) -> Void

  /// The state of the queue's own thread.
  enum Worker: UInt8 { case none, running, stopping }

  static var pool: SlotPool { SlotPool(.queues, stride: MemoryLayout<Storage>.stride) }

  let handle: Handle
  let storage: UnsafeMutablePointer<Storage>

  /// The slot at a handle's index. The slot may have been reused for another queue (see
  /// `isCurrent`).
  @inline(__always)
  init?(slotOf handle: Handle) {
    guard let slot = Self.pool.slot(of: handle, .queue) else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The current queue of a slot.
  init(slot: UnsafeMutableRawPointer) {
    storage = slot.assumingMemoryBound(to: Storage.self)
    handle = storage.pointee.header.id.load(ordering: .relaxed)
  }

  /// The fields of the slot. They are accessed in place, without a copy.
  var state: Storage {
    unsafeAddress { UnsafePointer(storage) }
    nonmutating unsafeMutableAddress { storage }
  }

  /// The number of calls that have been queued, including calls that replaced older calls.
  var queued: UInt64 { state.ring.appended &+ state.statistics.coalesced }

  // Relaxed is enough, because all other fields are read under the lock.
  var isCurrent: Bool { state.header.id.load(ordering: .relaxed) == handle }

  var lock: Lock { Lock.queues(handle.index) }

  var header: UnsafeMutablePointer<SlotHeader> {
    UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
  }

  var consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>> { storage.pointee.consumer.address }

  /// The target of a frame that runs this queue.
  var target: Target { .run(storage) }

  /// Executes `body` under the lock, if the queue still exists.
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    lock.lock()
    defer { lock.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  static func isValid(_ handle: Handle) -> Bool { Queue(slotOf: handle)?.isCurrent ?? false }

  /// The handle of a registration's queue, or `.none` if the queue is being destroyed.
  static func handle(of details: RegistrationDetails.Address) -> Handle {
    guard let slot = details.pointee.queue else { return .none }
    let queue = Queue(slot: slot)
    queue.lock.lock()
    defer { queue.lock.unlock() }
    return queue.isCurrent && queue.delivers(details) ? queue.handle : .none
  }

  /// The data that a registration stores about its queue; nil if the queue does not exist.
  static func destination(_ handle: Handle) -> Destination? {
    guard let queue = Queue(slotOf: handle) else { return nil }
    return try? queue.withLock { () throws(Status) in
      Destination(queue: queue.storage, recipients: queue.state.recipients)
    }
  }

  // MARK: - Use of queues

  private static let hasStarted = Atomic<Bool>(false)

  /// Whether any queue has ever been created.
  static var isInUse: Bool { hasStarted.load(ordering: .acquiring) }  // order: started

  /// Called before the first queue is created. Release: pairs with the acquire in `isInUse`.
  static func start() { hasStarted.store(true, ordering: .releasing) }  // order: started

  // MARK: - Sleeping, under the lock

  /// Wakes the sleeping threads. The caller need not hold the lock, because the word on which the
  /// threads sleep stays valid even after the slot has been reused.
  func wakeSleepers() { Lock.wakeAll(storage.pointee.arrival.address) }

  /// Releases the lock and sleeps until the queue changes, or until the given moment.
  ///
  /// The caller has closed the head of the ring, so a run that ends takes the lock and wakes this
  /// thread.
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

  /// Called when a thread has ended inside a run. Wakes the worker, which may be waiting to run the
  /// queue, and notifies the event loop if calls are still waiting.
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

  /// Empties and resets the queues in the child of a fork. The threads that waited for a queue or
  /// ran it do not exist in the child.
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
  /// Copies the statistics, all as of the same moment.
  static func read(
    _ handle: Handle, into out: UnsafeMutablePointer<multicast_queue_stats>?
  ) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let out else { throw .invalidArgument }
    return try queue.withLock { () throws(Status) in
      var statistics = queue.state.statistics
      statistics.pending = queue.state.ring.count
      statistics.queued = queue.queued
      // A call that is neither waiting nor gone has been executed or is being executed.
      let gone = statistics.dropped &+ statistics.cancelled &+ statistics.coalesced
      statistics.delivered = statistics.queued &- statistics.pending &- gone
      return StructSize.write(&statistics, to: out, smallest: StructSize.queueStats)
    }
  }
}

/// These checks require the queue's lock.
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
      // The statistics of a destroyed queue can no longer be read, so they need not add up.
      guard isCurrent, handle.kind == .queue else { return }
      let statistics = state.statistics
      check.that(
        queued >= waiting &+ statistics.dropped &+ statistics.cancelled &+ statistics.coalesced,
        "the statistics add up", queued, waiting)
    }
  #endif
}

extension Queue {
  /// Cancels the waiting calls to a registration that is no longer live.
  ///
  /// Afterwards, the head of the ring is closed, and the removing thread checks the frames. That
  /// thread finds the hazard of each call that a run has already taken out, and no other call
  /// begins (see `run`).
  func cancel(_ details: RegistrationDetails.Address, _ released: inout ReleasedPayloads) {
    lock.lock()
    if delivers(details) {  //~ calls_not_cancelled
      state.ring.close()
      let before = state.ring.count
      let taken = state.ring.takeAll(of: details, &released)
      state.statistics.cancelled &+= taken
      if taken > 0 { updateDescriptor(from: before) }
      checkInvariants()
    }
    // Wake the threads waiting for room. There may be room now, and a thread that is waiting to
    // queue a call to the removed delegate must stop waiting.
    let isRoomAwaited = state.isRoomAwaited
    lock.unlock()
    if isRoomAwaited { wakeAllForRoom() }
  }
}

extension Queue {
  /// Drops all waiting calls, and returns their number.
  static func clear(_ handle: Handle) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    var isRoomAwaited = false
    var released = ReleasedPayloads()
    let dropped = try queue.withLock { () throws(Status) in
      queue.state.ring.close()
      let before = queue.state.ring.count
      let dropped = queue.state.ring.takeAll(&released)
      queue.state.statistics.dropped &+= dropped
      queue.updateDescriptor(from: before)
      queue.checkInvariants()
      isRoomAwaited = queue.state.isRoomAwaited
      return Int(dropped)
    }
    if isRoomAwaited { queue.wakeAllForRoom() }
    released.cleanUp()
    return dropped
  }
}

extension Queue {
  /// A caller's `multicast_queue_options`, already checked.
  struct Settings {
    var capacity: UInt32 = 1024
    var overflow = MULTICAST_OVERFLOW_REFUSE.rawValue
    var threadName = shims_thread_name()
    var stackSize = 0
    var wake: Queue.Wake? = nil
    var wakeContext: UnsafeMutableRawPointer? = nil
    var payloadSize = 0
    var label = shims_label()

    private static var largestCapacity: Int { 1 << 24 }
    private static var smallestStack: Int { 16384 }
    private static var largestPayload: Int { 1 << 24 }

    init(_ given: UnsafePointer<multicast_queue_options>?) throws(Status) {
      guard let given else { return }
      var options = multicast_queue_options()
      guard StructSize.read(given, smallest: StructSize.queueOptions, into: &options) else {
        throw .invalidArgument
      }
      // The caller's sizes are `size_t` values, which are too large if they are negative as an
      // `Int`.
      guard options.flags == 0, options.reserved == 0, options.capacity >= 0,
        options.capacity <= Self.largestCapacity,
        options.overflow <= MULTICAST_OVERFLOW_BLOCK.rawValue,
        options.stack_size == 0 || options.stack_size >= Self.smallestStack,
        options.payload_size >= 0, options.payload_size <= Self.largestPayload
      else { throw .invalidArgument }
      if options.capacity > 0 { capacity = UInt32(truncatingIfNeeded: options.capacity) }
      overflow = options.overflow
      threadName = shims_make_thread_name(options.thread_name)
      stackSize = options.stack_size
      wake = options.wake
      wakeContext = options.wake_context
      payloadSize = options.payload_size
      shims_copy_label(&label, options.label)
    }

    /// - Returns: nil if the options do not request a reserve, or if the payloads are small enough
    ///   to be stored in the calls.
    func makeReserve() throws(Status) -> PayloadReserve? {
      if WaitingCall.holds(payloadSize) { return nil }
      return try PayloadReserve(payloadSize: payloadSize, capacity: Int(capacity))
    }
  }

  static func create(
    _ given: UnsafePointer<multicast_queue_options>?
  ) throws(Status) -> Handle {
    let options = try Settings(given)
    let recipients = try Lifetime.create(.recipient)
    var places: CallRing.Places? = nil
    var reserve: PayloadReserve? = nil
    do throws(Status) {
      let ring = try CallRing.Places(capacity: options.capacity)
      places = ring
      reserve = try options.makeReserve()
      return try pool.create(.queue) { (storage: UnsafeMutablePointer<Storage>, handle) in
        Queue(slot: storage, handle).initialize(recipients, ring, reserve, options)
      }
    } catch {
      reserve?.deallocate()
      places?.deallocate()
      Lifetime.discard(recipients)
      throw error
    }
  }

  private init(slot storage: UnsafeMutablePointer<Storage>, _ handle: Handle) {
    self.storage = storage
    self.handle = handle
  }

  private func initialize(
    _ recipients: Handle, _ places: CallRing.Places, _ reserve: PayloadReserve?,
    _ settings: Settings
  ) {
    Self.start()
    // Take the lock, because another thread may be using the slot with a stale handle.
    lock.lock()
    defer { lock.unlock() }
    state.recipients = recipients
    Lifetime(slotOf: recipients)?.storage.pointee.queue = handle
    state.ring.start(with: places)
    state.endingRecipients = .none
    state.settings = settings
    state.needsWake = settings.wake != nil
    state.isArrivalAwaited = false
    state.isRoomAwaited = false
    state.fastPathEnd = 0
    state.statistics = multicast_queue_stats()
    state.descriptor = -1
    state.worker = .none
    state.runner = nil
    state.consumer.store(.none, ordering: .relaxed)
    state.reserve.store(reserve?.start(with: lock), ordering: .relaxed)
  }
}

extension Options {
  /// Reads a caller's options, and looks up their queue. Returns nil if the options are invalid.
  static func read(_ given: UnsafePointer<multicast_add_options>?) -> Options? {
    guard var options = Options(given) else { return nil }
    if !options.queue.isNone { options.destination = Queue.destination(options.queue) }
    return options
  }
}
