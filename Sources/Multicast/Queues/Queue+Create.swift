import MulticastHeader
import MulticastShims
import Synchronization

extension Queue {
  /// A caller's options, checked.
  struct Settings {
    var capacity: UInt32 = 1024
    var overflow = MULTICAST_OVERFLOW_REFUSE.rawValue
    /// That of the worker.
    var threadName = shims_thread_name()
    var stackSize = 0
    /// Notifies a loop of the program that calls wait.
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
      // A `size_t`: below zero is more than there can be.
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

    /// - Returns: nil if none is wanted, or needed: small payloads are in the calls.
    func makeReserve() throws(Status) -> PayloadReserve? {
      if WaitingCall.holds(payloadSize) { return nil }
      return try PayloadReserve(payloadSize: payloadSize, capacity: Int(capacity))
    }
  }

  /// - Returns: the handle of an empty queue.
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
      _ = Lifetime.end(recipients, as: .recipient)
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
    // An operation with a stale handle may be using the slot.
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

extension Queue {
  /// Ends the handle, and removes all registrations that deliver here.
  ///
  /// If another thread is destroying the queue, this waits, too, and then fails.
  static func destroy(_ handle: Handle, _ timeout: Timeout = .unlimited) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    guard let (recipients, hasWake) = queue.findRecipients() else { return .invalidHandle }
    var hasEnded = false
    var places: CallRing.Places? = nil
    var reserve: PayloadReserve? = nil
    let ended = Lifetime.end(
      recipients, as: .recipient, timeout
    ) { payloads throws(Status) in
      try queue.withLock { () throws(Status) in
        places = queue.tearDown(&payloads)
        reserve = queue.state.reserve.exchange(nil, ordering: .relaxed).map { PayloadReserve($0) }
      }
      hasEnded = true
    }
    places?.deallocate()
    reserve?.end()  //~ reserve_not_ended
    // The hazard of a wake function is the handle.
    let woken = hasWake ? PendingRemovals.wait(for: handle, timeout) : .ok  //~ no_wait_for_wake
    let status = ended.combined(with: woken)
    if hasEnded {
      queue.lock.lock()
      queue.state.endingRecipients = .none
      queue.lock.unlock()
      pool.reclaim(handle.index)
    }
    return status
  }

  /// Waits until no call of the queue runs, nor its wake function. The queue has been destroyed
  /// before.
  static func waitForEnd(of handle: Handle, _ timeout: Timeout) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    queue.lock.lock()
    let end = handle.end(foundAs: queue.state.header.id.load(ordering: .relaxed))
    queue.lock.unlock()
    if end != .ok { return end }
    // The queue's runs have set their hazards under the lock, or before the head of the ring was
    // closed.
    var removal = Removal()
    let called = removal.waitForPriorRemovals(.queued(handle), timeout)
    return called.combined(with: PendingRemovals.wait(for: handle, timeout))
  }

  /// The lifetime of the registrations, even while another thread destroys the queue; and whether
  /// the queue has a wake function.
  private func findRecipients() -> (recipients: Handle, hasWake: Bool)? {
    lock.lock()
    defer { lock.unlock() }
    let hasWake = state.settings.wake != nil
    if isCurrent { return (state.recipients, hasWake) }
    let isEnding = state.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
    guard isEnding && !state.endingRecipients.isNone else { return nil }
    return (state.endingRecipients, hasWake)
  }

  /// - Returns: the places of the ring, which has no calls.
  private func tearDown(_ released: inout ReleasedPayloads) -> CallRing.Places {
    state.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
    state.endingRecipients = state.recipients
    state.recipients = .none
    _ = state.ring.takeAll(&released)
    closeDescriptor()
    state.worker = .none
    wakeSleepers()
    return state.ring.end()
  }
}
