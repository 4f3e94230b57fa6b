import MulticastHeader
import MulticastShims
import Synchronization

extension Queue {
  /// A caller's options, checked.
  private struct Settings {
    var capacity: UInt32 = 1024
    var overflow = MULTICAST_OVERFLOW_REFUSE.rawValue
    var threadName = shims_thread_name()
    var stackSize = 0
    var wake: Queue.Wake? = nil
    var wakeContext: UnsafeMutableRawPointer? = nil

    private static var largestCapacity: Int { 1 << 24 }
    private static var smallestStack: Int { 16384 }

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
        options.stack_size == 0 || options.stack_size >= Self.smallestStack
      else { throw .invalidArgument }
      if options.capacity > 0 { capacity = UInt32(truncatingIfNeeded: options.capacity) }
      overflow = options.overflow
      threadName = shims_make_thread_name(options.thread_name)
      stackSize = options.stack_size
      wake = options.wake
      wakeContext = options.wake_context
    }
  }

  /// - Returns: the handle of an empty queue.
  static func create(
    _ given: UnsafePointer<multicast_queue_options>?
  ) throws(Status) -> Handle {
    let options = try Settings(given)
    let recipients = try Lifetime.create(.recipients)
    do throws(Status) {
      guard let places = CallRing.Places(capacity: options.capacity) else { throw .outOfMemory }
      do throws(Status) {
        return try pool.create(.queue) {
          (storage: UnsafeMutablePointer<Storage>, handle) in
          Queue(slot: storage, handle).initialize(recipients, places, options)
        }
      } catch {
        places.deallocate()
        throw error
      }
    } catch {
      _ = Lifetime.end(recipients, as: .recipient)
      throw error
    }
  }

  private init(slot storage: UnsafeMutablePointer<Storage>, _ handle: Handle) {
    self.storage = storage
    self.handle = handle
  }

  private func initialize(
    _ recipients: Handle, _ places: CallRing.Places, _ settings: Settings
  ) {
    Self.start()
    // An operation with a stale handle may be using the slot.
    lock.lock()
    defer { lock.unlock() }
    state.recipients = recipients
    state.ring.start(with: places)
    state.endingRecipients = .none
    state.capacity = settings.capacity
    state.overflow = settings.overflow
    state.threadName = settings.threadName
    state.stackSize = settings.stackSize
    state.wake = settings.wake
    state.wakeContext = settings.wakeContext
    state.needsWake = settings.wake != nil
    state.isArrivalAwaited = false
    state.isRoomAwaited = false
    state.quietEnd = 0
    state.statistics = Statistics()
    state.descriptor = -1
    state.worker = .none
    state.runner = nil
    state.consumer.store(.none, ordering: .relaxed)
  }
}
