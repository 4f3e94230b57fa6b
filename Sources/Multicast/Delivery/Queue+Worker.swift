import MulticastShims
import Synchronization

extension Queue {
  /// The argument of a new worker thread, which also receives the outcome of the thread's start.
  /// The struct is on the stack of the thread that starts the worker.
  private struct Start {
    let handle: Handle
    var number: UInt32
    /// Guarded by the waits' lock. Nil until the new thread has begun.
    var outcome: Status? = nil
    var name: shims_thread_name

    static func key(_ start: UnsafeMutablePointer<Start>) -> Sleeper.Key {
      UInt64(UInt(bitPattern: start))
    }
  }

  static func start(_ handle: Handle) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    var start = Start(handle: handle, number: 0, name: shims_thread_name())
    var stackSize = 0
    start.number = try queue.withLock { () throws(Status) in
      guard queue.worker == .none else { throw .state }
      start.name = queue.state.settings.threadName
      stackSize = queue.state.settings.stackSize
      // Close the head, so that another thread that is running the queue begins no further call.
      queue.state.ring.close()
      queue.state.worker = .running
      queue.state.workerRecord = nil
      queue.state.workerThread.store(.none, ordering: .relaxed)
      queue.state.workerNumber &+= 1
      return queue.state.workerNumber
    }
    withUnsafeMutablePointer(to: &start) { start in
      guard shims_start_thread(work, start, stackSize) else {
        queue.workerDidEnd(start.pointee.number)
        start.pointee.outcome = .system
        return
      }
      Waits.sleep(for: .nothing, with: Start.key(start)) { start.pointee.outcome != nil }
    }
    return start.outcome.unsafelyUnwrapped
  }

  /// Stops the worker, and waits until it has ended.
  ///
  /// - Returns: `pending` if the worker is waiting for this thread, directly or through others.
  static func stop(_ handle: Handle) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    let number = try queue.withLock { () throws(Status) in
      guard queue.worker != .none else { throw .state }
      queue.state.ring.close()
      queue.state.worker = .stopping
      queue.wakeSleepers()
      return queue.state.workerNumber
    }
    return Waits.sleep(for: .thread(queue.storage.pointee.workerThread.address)) {
      queue.lock.lock()
      defer { queue.lock.unlock() }
      return !queue.hasWorker(number)
    }
  }

  private static let work: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
    given in
    let start = given.unsafelyUnwrapped.assumingMemoryBound(to: Start.self)
    let (handle, number) = (start.pointee.handle, start.pointee.number)
    let queue = Queue(slotOf: handle).unsafelyUnwrapped
    shims_set_thread_name(&start.pointee.name)
    let thread = ThreadRegistry.enter()
    if let thread { queue.workerDidBegin(number, thread) } else { queue.workerDidEnd(number) }
    let key = Start.key(start)
    Waits.wake(key) { start.pointee.outcome = thread == nil ? .outOfMemory : .ok }
    if let thread { queue.work(as: thread, number) }
    return nil
  }

  private func work(as thread: ThreadRecord, _ number: UInt32) {
    lock.lock()
    while hasWorker(number) && state.worker == .running {
      // Close the head before checking whether the queue is free. Then a run by another thread
      // either has already ended, or finds the head closed and wakes this thread when it ends.
      state.ring.close()
      if state.ring.count > 0 && isFree(for: thread) {
        lock.unlock()
        _ = Queue.run(handle, limit: .max)
        lock.lock()
      } else {
        sleep(until: .max)
      }
    }
    lock.unlock()
    workerDidEnd(number)
  }

  private func workerDidBegin(_ number: UInt32, _ thread: ThreadRecord) {
    lock.lock()
    defer { lock.unlock() }
    guard hasWorker(number) else { return }
    state.workerRecord = thread.storage
    state.workerThread.store(thread.identity, ordering: .relaxed)
    // A thread that is still running the queue remains the one that is expected to make room.
    if isFree(for: thread) {
      state.consumer.store(thread.identity, ordering: .relaxed)
    }
  }

  private func workerDidEnd(_ number: UInt32) {
    lock.lock()
    if hasWorker(number) {
      state.worker = .none
      // From now on, other threads must not wait for this thread to make room.
      let identity = state.workerThread.load(ordering: .relaxed)
      if state.consumer.load(ordering: .relaxed) == identity {
        state.consumer.store(.none, ordering: .relaxed)
      }
    }
    lock.unlock()
    Waits.wake()
  }

  // MARK: - Under the lock

  /// The state of the worker; `none` if the worker's thread has ended, even inside a call.
  @inline(never) var worker: Worker {
    guard let record = state.workerRecord else { return state.worker }
    let identity = state.workerThread.load(ordering: .relaxed)
    return ThreadRecord(record).identity == identity ? state.worker : .none
  }

  /// Whether the worker with this number is still the queue's worker.
  private func hasWorker(_ number: UInt32) -> Bool {
    isCurrent && worker != .none && state.workerNumber == number
  }
}
