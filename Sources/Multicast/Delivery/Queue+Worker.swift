import MulticastShims
import Synchronization

/// The queue's own thread.
extension Queue {
  /// What a new thread is told, and tells; on the stack of the one that starts it.
  private struct Start {
    let handle: UInt64
    let number: UInt32
    /// Guarded by the lock of calls; nil until the thread has begun.
    var outcome: Status? = nil
  }

  static func start(_ handle: UInt64) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    let number = try queue.withLock { () throws(Status) in
      guard queue.worker == .none else { throw .state }
      queue.storage.pointee.worker = .running
      queue.storage.pointee.workerRecord = nil
      queue.storage.pointee.workerThread.store(0, ordering: .relaxed)
      queue.storage.pointee.workerNumber &+= 1
      return queue.storage.pointee.workerNumber
    }
    var start = Start(handle: handle, number: number)
    withUnsafeMutablePointer(to: &start) { start in
      guard shims_start_thread(work, start) else {
        queue.workerEnds(number)
        start.pointee.outcome = .system
        return
      }
      Departures.waitUntil { start.pointee.outcome != nil }
    }
    return start.outcome.unsafelyUnwrapped
  }

  /// - Returns: `pending` where the worker, or those that it waits for, wait for this thread.
  static func stop(_ handle: UInt64) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    let number = try queue.withLock { () throws(Status) in
      guard queue.worker != .none else { throw .state }
      queue.storage.pointee.worker = .stopping
      queue.wakeSleepers()
      return queue.storage.pointee.workerNumber
    }
    let hasEnded = Departures.waitUntil(other: queue.workerThread, isForRoom: false) {
      queue.lock.lock()
      defer { queue.lock.unlock() }
      return !queue.hasWorker(number)
    }
    return hasEnded ? .ok : .pending
  }

  private static let work: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
    given in
    let start = given.unsafelyUnwrapped.assumingMemoryBound(to: Start.self)
    let (handle, number) = (start.pointee.handle, start.pointee.number)
    let queue = Queue(slotOf: handle).unsafelyUnwrapped
    let thread = ThreadRegistry.enter()
    if let thread { queue.workerBegins(number, thread) } else { queue.workerEnds(number) }
    Departures.wake { start.pointee.outcome = thread == nil ? .outOfMemory : .ok }
    if let thread { queue.work(as: thread, number) }
    return nil
  }

  private func work(as thread: ThreadRecord, _ number: UInt32) {
    lock.lock()
    while hasWorker(number) && storage.pointee.worker == .running {
      if storage.pointee.ring.count > 0 && isFree(for: thread) {
        _ = try? run(by: thread, limit: .max)
      } else {
        sleep(until: .max)
      }
    }
    lock.unlock()
    workerEnds(number)
  }

  private func workerBegins(_ number: UInt32, _ thread: ThreadRecord) {
    lock.lock()
    defer { lock.unlock() }
    guard hasWorker(number) else { return }
    storage.pointee.workerRecord = thread.storage
    storage.pointee.workerThread.store(thread.identity, ordering: .relaxed)
    // Until a run by another thread has ended, it is that one that makes room.
    if isFree(for: thread) {
      storage.pointee.consumer.store(thread.identity, ordering: .relaxed)
    }
  }

  private func workerEnds(_ number: UInt32) {
    lock.lock()
    if hasWorker(number) {
      storage.pointee.worker = .none
      // Nobody is to wait for this thread to make room, though it has not ended yet.
      let identity = storage.pointee.workerThread.load(ordering: .relaxed)
      if storage.pointee.consumer.load(ordering: .relaxed) == identity {
        storage.pointee.consumer.store(0, ordering: .relaxed)
      }
    }
    lock.unlock()
    Departures.wake()
  }

  // MARK: - Under the lock

  /// What there is of a worker: none where its thread has ended, be it inside of a call.
  var worker: Worker {
    guard let record = storage.pointee.workerRecord else { return storage.pointee.worker }
    let identity = storage.pointee.workerThread.load(ordering: .relaxed)
    return ThreadRecord(record).identity == identity ? storage.pointee.worker : .none
  }

  /// Whether this worker is still the queue's.
  private func hasWorker(_ number: UInt32) -> Bool {
    isCurrent && worker != .none && storage.pointee.workerNumber == number
  }

  private var workerThread: UnsafeMutablePointer<Atomic<UInt64>> {
    withUnsafePointer(to: storage.pointee.workerThread) { UnsafeMutablePointer(mutating: $0) }
  }
}
