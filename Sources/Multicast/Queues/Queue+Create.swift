import MulticastHeader
import MulticastShims
import Synchronization

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
