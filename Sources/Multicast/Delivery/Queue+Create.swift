import CMulticast
import MulticastShims
import Synchronization

extension Queue {
  static let defaultCapacity: UInt32 = 1024
  static let largestCapacity: UInt32 = 1 << 24

  /// - Returns: the handle of an empty queue.
  static func create(
    _ given: UnsafePointer<multicast_queue_options>?
  ) throws(Status) -> UInt64 {
    var (capacity, overflow) = (defaultCapacity, MULTICAST_OVERFLOW_REFUSE)
    if let given {
      guard StructSize.isValid(given, smallest: StructSize.queueOptions),
        given.pointee.capacity <= largestCapacity,
        given.pointee.overflow.rawValue <= MULTICAST_OVERFLOW_BLOCK.rawValue
      else { throw .invalidArgument }
      if given.pointee.capacity > 0 { capacity = given.pointee.capacity }
      overflow = given.pointee.overflow
    }
    let recipients = try Lifetime.create(kind: Handle.Kind.recipients)
    do throws(Status) {
      guard let ring = CallRing(capacity: capacity) else { throw .outOfMemory }
      do throws(Status) {
        return try moveIn(recipients, ring, capacity, overflow)
      } catch {
        ring.deallocate()
        throw error
      }
    } catch {
      _ = Lifetime.end(recipients, as: .recipient)
      throw error
    }
  }

  private static func moveIn(
    _ recipients: UInt64, _ ring: CallRing, _ capacity: UInt32, _ overflow: multicast_overflow
  ) throws(Status) -> UInt64 {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    if !Delivery.isInUse {
      Delivery.start(
        queue: queueCall, letGo: letGoOfPayload, retract: retractCalls,
        runEnds: wakeAfterRun, restartInChild: restartAllInChild)
    }
    let (slot, handle) = try pool.take(from: directory, kind: Handle.Kind.queue)
    let storage = slot.assumingMemoryBound(to: Storage.self)
    let lock = Lock.queues(Handle.index(of: handle))
    lock.lock()
    defer { lock.unlock() }
    if !storage.pointee.isPrepared {
      guard shims_condition_init(&storage.pointee.arrival) else {
        pool.giveBack(Handle.index(of: handle), to: directory)
        throw .outOfMemory
      }
      storage.pointee.isPrepared = true
    }
    storage.pointee.recipients = recipients
    storage.pointee.ring = ring
    storage.pointee.capacity = capacity
    storage.pointee.overflow = overflow
    storage.pointee.statistics = Statistics()
    storage.pointee.descriptor = -1
    storage.pointee.worker = .none
    storage.pointee.runner = nil
    storage.pointee.consumer.store(0, ordering: .relaxed)
    storage.pointee.header.id.store(handle, ordering: .releasing)
    return handle
  }

  /// Ends the handle and removes all registrations that deliver here.
  static func destroy(_ handle: UInt64) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    do throws(Status) {
      let recipients = try queue.withLock { () throws(Status) in queue.moveOut() }
      let status = Lifetime.end(recipients, as: .recipient)
      Lock.slabs.lock()
      pool.giveBack(Handle.index(of: handle), to: directory)
      Lock.slabs.unlock()
      return status
    } catch {
      return error
    }
  }

  /// - Returns: the recipients, which know nothing of it yet.
  private func moveOut() -> UInt64 {
    let recipients = storage.pointee.recipients
    storage.pointee.header.id.store(
      Handle.change(handle, to: Handle.Kind.vacant), ordering: .relaxed)
    storage.pointee.recipients = 0
    _ = storage.pointee.ring.takeAll()
    storage.pointee.ring.deallocate()
    storage.pointee.ring = CallRing()
    if storage.pointee.descriptor >= 0 { shims_event_close(storage.pointee.descriptor) }
    storage.pointee.descriptor = -1
    storage.pointee.worker = .none
    wakeSleepers()
    return recipients
  }

  // MARK: - fork

  /// The child has none of the calls that wait, nor the threads that waited or ran.
  private static let restartAllInChild: @convention(c) () -> Void = {
    pool.forEach(in: directory) { slot, _ in Queue(slot: slot).restartInChild() }
  }

  private func restartInChild() {
    guard storage.pointee.isPrepared else { return }
    _ = shims_condition_init(&storage.pointee.arrival)
    storage.pointee.sleepers = 0
    storage.pointee.blocked = 0
    guard Handle.kind(of: handle) == Handle.Kind.queue else { return }
    storage.pointee.statistics.dropped &+= storage.pointee.ring.takeAll()
    storage.pointee.worker = .none
    if let runner = storage.pointee.runner, !ThreadRecord(runner).isInvoking(address) {
      storage.pointee.runner = nil
    }
    if storage.pointee.descriptor >= 0 {
      storage.pointee.descriptor = shims_event_replace(storage.pointee.descriptor)
    }
  }
}
