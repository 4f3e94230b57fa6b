import CMulticast
import MulticastShims
import Synchronization

extension Queue {
  /// Makes calls that wait, on this thread.
  ///
  /// - Parameter limit: The most; 0 for as many as wait now.
  /// - Returns: how many were made.
  static func run(_ handle: UInt64, limit: UInt) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let thread = ThreadRecord.current ?? ThreadRegistry.enter() else { throw .outOfMemory }
    // Somebody may wait for this thread to run the queue once more.
    defer { if ThreadRegistry.leaveIfEnding(thread) { Departures.wake() } }
    queue.lock.lock()
    defer { queue.lock.unlock() }
    guard queue.isCurrent else { throw .invalidHandle }
    guard queue.isRunnable(by: thread), queue.isFree(for: thread) else { throw .state }
    let waiting = UInt(queue.storage.pointee.ring.count)
    return try queue.run(by: thread, limit: limit == 0 ? waiting : limit)
  }

  // MARK: - Under the lock

  /// Whether the queue is for this thread to run: it has no thread of its own, or this is it.
  private func isRunnable(by thread: ThreadRecord) -> Bool {
    switch worker {
    case .none: true
    case .running: storage.pointee.workerRecord == thread.storage
    case .stopping: false
    }
  }

  /// Whether no other thread runs the queue; one that has ended inside of a call does not any more.
  func isFree(for thread: ThreadRecord) -> Bool {
    guard let runner = storage.pointee.runner else { return true }
    return thread.storage == runner || !ThreadRecord(runner).isInvoking(address)
  }

  /// Makes calls that wait, one after the other. The lock is given up during each.
  ///
  /// A call is named in the frame before the lock is given up, and until it is taken again: who
  /// takes calls back under the lock then finds the name, if a call was begun.
  ///
  /// - Parameter limit: The most calls to make. Of those that are taken out some are not made, as
  ///   of contexts that are dead.
  func run(by thread: ThreadRecord, limit: UInt) throws(Status) -> Int {
    // Nil unless this is a run inside a run: a thread that has ended inside of one runs it no more.
    // Its frame may be that of a queue which had this slot before.
    let isRunning = storage.pointee.runner == thread.storage && thread.isInvoking(address)
    let outer = isRunning ? thread.storage : nil
    guard let frame = thread.push() else { throw .limit }
    // No list is read: whatever was retired may be freed.
    frame.pointee.epoch.store(.max, ordering: .relaxed)
    frame.pointee.multicast.store(address, ordering: .releasing)
    storage.pointee.runner = thread.storage
    storage.pointee.consumer.store(thread.identity, ordering: .relaxed)

    var made: UInt = 0
    withUnsafeTemporaryAllocation(
      byteCount: MemoryLayout<WaitingCall>.stride, alignment: 16
    ) { bytes in
      let call = bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: WaitingCall.self)
      // Between calls the queue may be destroyed, or given a thread of its own, or that stopped.
      while made < limit && isCurrent && isRunnable(by: thread) && take(call, frame) {
        if runFirst(call, frame) { made &+= 1 }
      }
    }

    thread.pop(frame)
    if isCurrent {
      storage.pointee.runner = outer
      if outer == nil { runEnds() }
    }
    return Int(made)
  }

  /// If there is a worker it may wait for its turn, and is the one now that makes room.
  private func runEnds() {
    let workerThread = storage.pointee.workerThread.load(ordering: .relaxed)
    if workerThread != 0 && worker == .running {
      storage.pointee.consumer.store(workerThread, ordering: .relaxed)
    }
    if storage.pointee.sleepers > 0 { wakeSleepers() }
  }

  /// The worker may wait for its turn, and the thread that ran the queue has ended.
  static let wakeAfterRun: Delivery.RunEnds = { run in
    let slot = UnsafeMutableRawPointer(bitPattern: run & ~3).unsafelyUnwrapped
    let queue = Queue(slot: slot)
    queue.lock.lock()
    queue.wakeSleepers()
    queue.lock.unlock()
  }

  /// Takes out the oldest call and names its delegate.
  private func take(
    _ call: UnsafeMutablePointer<WaitingCall>, _ frame: UnsafeMutablePointer<Frame>
  ) -> Bool {
    let before = storage.pointee.ring.count
    guard let first = storage.pointee.ring.takeFirst() else { return false }
    shims_copy(call, first, MemoryLayout<WaitingCall>.size)
    storage.pointee.statistics.delivered &+= 1
    changed(from: before)
    checkInvariants()
    call.pointee.sharedPayload?.keep(in: frame)
    frame.pointee.delegate.store(call.pointee.token, ordering: .releasing)
    return true
  }

  /// Makes a call that was taken, without the lock, and takes the name away, with it.
  private func runFirst(
    _ call: UnsafeMutablePointer<WaitingCall>, _ frame: UnsafeMutablePointer<Frame>
  ) -> Bool {
    let isAwaited = storage.pointee.blocked > 0
    lock.unlock()
    if isAwaited { Departures.wake() }

    let (token, extras) = (call.pointee.token, call.pointee.extras)
    let invocation = WaitingCall.invocation(of: call)
    let registration = Registration(index: Handle.index(of: token))
    let function = extras.pointee.function.unsafelyUnwrapped
    let isOnce = extras.pointee.flags & MULTICAST_ONCE != 0
    var isMade = true
    if isOnce || extras.pointee.lock != nil {
      isMade = registration.callNamed(token, context: extras.pointee.context, isOnce: isOnce) {
        _ = invocation(function, $0)
      }
    } else {
      _ = invocation(function, extras.pointee.context)
    }
    // First out of the frame: the child of a fork lets go of what it finds there.
    let payload = Payload(keptBy: frame)
    frame.pointee.payload.store(0, ordering: .relaxed)
    payload?.letGo()

    lock.lock()
    // Release: whatever the delegate did happened before a remover finds the name gone.
    frame.pointee.delegate.store(0, ordering: .releasing)
    if !isMade && isCurrent {
      storage.pointee.statistics.delivered &-= 1
      storage.pointee.statistics.retracted &+= 1
    }
    // A remover that came to this lock before us has seen the name, and we see that it came.
    if registration.id != token {
      lock.unlock()
      Departures.attend(token)
      lock.lock()
    }
    return isMade
  }
}
