import CMulticast
import MulticastShims
import Synchronization

extension Queue {
  private static var defaultCapacity: UInt32 { 1024 }
  private static var largestCapacity: UInt32 { 1 << 24 }

  /// - Returns: the handle of an empty queue.
  static func create(
    _ given: UnsafePointer<multicast_queue_options>?
  ) throws(Status) -> Handle {
    var (capacity, overflow) = (defaultCapacity, MULTICAST_OVERFLOW_REFUSE)
    if let given {
      guard StructSize.isValid(given, smallest: StructSize.queueOptions),
        given.pointee.capacity <= largestCapacity,
        given.pointee.overflow.rawValue <= MULTICAST_OVERFLOW_BLOCK.rawValue
      else { throw .invalidArgument }
      if given.pointee.capacity > 0 { capacity = given.pointee.capacity }
      overflow = given.pointee.overflow
    }
    let recipients = try Lifetime.create(.recipients)
    do throws(Status) {
      guard let ring = CallRing(capacity: capacity) else { throw .outOfMemory }
      do throws(Status) {
        return try pool.create(.queue) {
          (storage: UnsafeMutablePointer<Storage>, handle) throws(Status) in
          try Queue(slot: storage, handle).initialize(recipients, ring, capacity, overflow)
        }
      } catch {
        ring.deallocate()
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
    _ recipients: Handle, _ ring: CallRing, _ capacity: UInt32, _ overflow: multicast_overflow
  ) throws(Status) {
    Self.start()
    // An operation with a stale handle may be using the slot.
    lock.lock()
    defer { lock.unlock() }
    if !state.hasCondition {
      guard shims_condition_init(&state.arrival) else { throw .outOfMemory }
      state.hasCondition = true
    }
    state.recipients = recipients
    state.ring = ring
    state.capacity = capacity
    state.overflow = overflow
    state.statistics = Statistics()
    state.descriptor = -1
    state.worker = .none
    state.runner = nil
    state.consumer.store(.none, ordering: .relaxed)
  }
}
