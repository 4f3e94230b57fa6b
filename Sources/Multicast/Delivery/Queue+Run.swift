import MulticastHeader
import MulticastShims
import Synchronization

extension Queue {
  /// Makes calls that wait, on this thread.
  ///
  /// - Parameter limit: The most calls to make; 0: as many as wait now.
  /// - Returns: how many were made.
  @_optimize(speed)
  static func run(_ handle: Handle, limit: UInt) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      queue.runWasCalled()
      throw .outOfMemory
    }
    // Another thread may wait for this one to run the queue again.
    defer { if ThreadRegistry.leaveIfEnding(thread, hasEntered) { Waits.wake() } }
    queue.lock.lockInline()
    do throws(Status) {
      guard queue.isCurrent else { throw .invalidHandle }
      // Also if the run is refused: it may have used up a wake-up.
      queue.renewWake()
      guard queue.isRunnable(by: thread), queue.isFree(for: thread) else { throw .state }
    } catch {
      queue.lock.unlock()
      throw error
    }
    let waiting = UInt(queue.state.ring.count)
    return try queue.run(by: thread, limit: limit == 0 ? waiting : limit)
  }

  // MARK: - Under the lock

  /// Whether this thread may run the queue: the queue has no thread of its own, or this is it.
  @inline(__always)
  private func isRunnable(by thread: ThreadRecord) -> Bool {
    state.worker == .none || isRunnable(byWorker: thread)
  }

  private func isRunnable(byWorker thread: ThreadRecord) -> Bool {
    switch worker {
    case .none: true
    case .running: state.workerRecord == thread.storage
    case .stopping: false
    }
  }

  /// Whether no other thread runs the queue. A thread that has ended inside a call does not any
  /// more.
  func isFree(for thread: ThreadRecord) -> Bool {
    guard let runner = state.runner else { return true }
    return thread.storage == runner || !ThreadRecord(runner).isInside(target)
  }

  // MARK: - A run

  /// Some calls that a run has copied under one hold of the lock, and where it is.
  private struct Batch {
    let calls: UnsafeMutablePointer<WaitingCall>
    let capacity: UInt64
    var count: UInt64 = 0
    /// How many of them were taken out; the last of these is the call that is made.
    var taken: UInt64 = 0
    /// The position behind that call.
    var position: UInt64 = 0
    /// Whether that call was made: its context was not dead.
    var isMade = true
    /// Whether this thread tried to take out the next call, and found the head closed.
    var isClosed = false

    /// Of the outermost run of a thread. In others the stack matters.
    static let capacity: UInt64 = 8

    @inline(__always) var current: UnsafeMutablePointer<WaitingCall> {
      calls + Int(truncatingIfNeeded: taken &- 1)
    }

    /// Whether there is nothing to do under the lock for that call, unless the head is closed.
    @inline(__always) var isQuiet: Bool {
      isMade && !isClosed && current.pointee.sharedPayload == nil
    }

    @inline(__always) var next: UnsafeMutablePointer<WaitingCall> {
      calls + Int(truncatingIfNeeded: taken)
    }
  }

  /// Makes calls that wait, one after the other. The lock is held at the beginning; it is released
  /// before each call, and at the end.
  ///
  /// Some calls are copied under one hold of the lock. The first is taken out there, the others
  /// without the lock, as long as the head of the ring is open: see `RingHead`.
  ///
  /// The hazard of a call is set before the call is taken out. A removal that takes calls back
  /// closes the head under the lock, and then looks at the hazards: it finds the hazard if a call
  /// was taken out before. The hazard is replaced, or cleared, before the head is used again. So
  /// the removal finds it gone; or the run finds the head closed, takes the lock, and looks whether
  /// the registration is live.
  ///
  /// - Parameter limit: The most calls to make. A call that is taken out, but not made because its
  ///   context is dead, does not count.
  @_optimize(speed)
  func run(by thread: ThreadRecord, limit: UInt) throws(Status) -> Int {
    guard let frame = thread.push() else {
      lock.unlock()
      throw .limit
    }
    return frame == thread.frame(0)
      ? runOutside(by: thread, frame, limit: limit) : runInside(by: thread, frame, limit: limit)
  }

  // Two functions, because of the stack.

  @inline(never)
  @_optimize(speed)
  private func runOutside(by thread: ThreadRecord, _ frame: Frame, limit: UInt) -> Int {
    withUnsafeTemporaryAllocation(
      byteCount: Int(Batch.capacity) * MemoryLayout<WaitingCall>.stride, alignment: 16
    ) { bytes in
      let calls = bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: WaitingCall.self)
      // Without a wake function nobody has to be told of calls that are left.
      return run(
        by: thread, frame, limit: limit, Batch(calls: calls, capacity: Batch.capacity),
        isInner: false, endsQuietly: state.wake == nil)
    }
  }

  /// The same inside a call.
  @inline(never)
  @_optimize(speed)
  private func runInside(by thread: ThreadRecord, _ frame: Frame, limit: UInt) -> Int {
    withUnsafeTemporaryAllocation(
      byteCount: MemoryLayout<WaitingCall>.stride, alignment: 16
    ) { bytes in
      let calls = bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: WaitingCall.self)
      // Whether this is a run inside a run. The runner may be out of date: that thread has ended
      // its run, perhaps inside a call, and this thread may have its record.
      let isInside = thread.isInside(target)
      let isInner = isInside && state.runner == thread.storage
      // If this thread is inside a run of the slot's last occupant, the runner has to be cleared.
      return run(
        by: thread, frame, limit: limit, Batch(calls: calls, capacity: 1), isInner: isInner,
        endsQuietly: state.wake == nil && isInside == isInner)
    }
  }

  /// - Parameters:
  ///   - isInner: Whether this thread runs the queue already.
  ///   - endsQuietly: Whether the end of the run needs no lock if nothing happens meanwhile.
  /// - Returns: how many calls were made.
  @inline(__always)
  @_optimize(speed)
  private func run(
    by thread: ThreadRecord, _ frame: Frame, limit: UInt, _ empty: Batch, isInner: Bool,
    endsQuietly: Bool
  ) -> Int {
    frame.publish(target, epoch: .latest)
    state.runner = thread.storage
    var made: UInt = 0
    var batch = empty
    // Between calls the queue may be destroyed, and its own thread may be started or stopped.
    while made < limit && isCurrent && isRunnable(by: thread)
      && take(&batch, most: limit &- made, thread, frame)
    {
      makeAll(&batch, frame, &made)
      if made == limit && batch.isQuiet && endsQuietly {
        end(batch, thread, frame, isInner: isInner)
        return Int(made)
      }
      lockAgain(after: batch, frame)
    }
    didEnd(frame, thread, isInner: isInner)
    thread.pop(frame)
    lock.unlock()
    return Int(made)
  }

  /// Copies the oldest calls, sets the hazard of the first, and takes it out. The lock is held at
  /// the beginning, and released unless there is no call.
  @inline(__always)
  @_optimize(speed)
  private func take(
    _ batch: inout Batch, most: UInt, _ thread: ThreadRecord, _ frame: Frame
  ) -> Bool {
    let hasDescriptor = state.descriptor >= 0
    // With a descriptor the last call is taken out here, so that the descriptor changes with it.
    let before = hasDescriptor ? state.ring.count : 0
    // If threads sleep for room, each call is taken out under the lock, and wakes one of them.
    let isRoomAwaited = state.isRoomAwaited
    batch.count = state.ring.takeFirst(
      batch.calls, atMost: isRoomAwaited ? 1 : min(UInt64(most), batch.capacity),
      keepsLast: hasDescriptor)
    if batch.count == 0 { return false }
    batch.taken = 1
    batch.position = state.ring.knownHead
    updateQuietEnd()
    if hasDescriptor { updateDescriptor(from: before) }
    checkInvariants()
    batch.calls.pointee.sharedPayload?.pass(to: frame)
    frame.setHazard(batch.calls.pointee.token)
    // A thread that sleeps may wait for its turn. The end of the run has to wake it.
    if state.sleeperCount == 0 && !isRoomAwaited { state.ring.head.open(at: batch.position) }
    // From here on this thread is expected to make room.
    state.consumer.store(thread.identity, ordering: .relaxed)
    lock.unlockInline()
    if isRoomAwaited { wakeForRoom() }  //~ blocked_not_woken
    return true
  }

  /// Makes the calls of a batch, as long as they can be taken out without the lock. After the last
  /// one the frame still has its payload, and its hazard or that of the next.
  @inline(__always)
  private func makeAll(_ batch: inout Batch, _ frame: Frame, _ made: inout UInt) {
    while true {
      batch.isMade = make(batch.current)
      if !batch.isMade { return }
      made &+= 1
      if batch.taken == batch.count { return }
      frame.setHazard(batch.next.pointee.token)  //~ no_hazard_in_batch
      batch.isClosed = !state.ring.head.take(at: batch.position)
      if batch.isClosed { return }
      batch.position &+= 1
      batch.taken &+= 1
    }
  }

  /// Makes a call that was taken out. Its hazard is set.
  ///
  /// - Returns: whether it was made. It is not if its context is dead, or if it was removed.
  @inline(__always)
  private func make(_ call: UnsafeMutablePointer<WaitingCall>) -> Bool {
    let details = call.pointee.details
    if details.pointee.flags & MULTICAST_ONCE != 0 || details.pointee.lock != nil {
      return makeProtected(call)
    }
    let invocation = WaitingCall.invocation(of: call)
    //~ called_under_lock
    _ = invocation(details.pointee.function.unsafelyUnwrapped, details.pointee.context)
    return true
  }

  @inline(never)
  private func makeProtected(_ call: UnsafeMutablePointer<WaitingCall>) -> Bool {
    let (token, details) = (call.pointee.token, call.pointee.details)
    let invocation = WaitingCall.invocation(of: call)
    let function = details.pointee.function.unsafelyUnwrapped
    let isOnce = details.pointee.flags & MULTICAST_ONCE != 0
    return Registration(index: token.index).callProtected(
      token, context: details.pointee.context, isOnce ? InvocationList.State.once : 0
    ) {
      _ = invocation(function, $0)
    }
  }

  /// Ends a run, without the lock if the head is open.
  @inline(__always)
  private func end(_ batch: Batch, _ thread: ThreadRecord, _ frame: Frame, isInner: Bool) {
    frame.clearHazard()
    // The frame first: a thread that waits for its turn closes the head, and then looks at the
    // frames.
    thread.pop(frame)
    if state.ring.head.close(at: batch.position) { return }
    didEndClosed(batch, thread, isInner: isInner)
  }

  @inline(never) private func didEndClosed(
    _ batch: Batch, _ thread: ThreadRecord, isInner: Bool
  ) {
    lookAfter(batch)
    lock.lock()
    didEnd(nil, thread, isInner: isInner)
    lock.unlock()
  }

  /// Does what is due after the last call of a batch, and takes the lock.
  @inline(never)
  private func lockAgain(after batch: Batch, _ frame: Frame) {
    var released = ReleasedPayloads()
    lock.lock()
    // Under the lock: a fork in between would leave a reference that no frame has.
    released.release(Payload.take(from: frame), isMade: batch.isMade)
    frame.clearHazard()  //~ hazard_not_cleared
    if !batch.isMade && isCurrent { state.statistics.retracted &+= 1 }
    // Another occupant of the slot never has its head open at this position.
    let wasOpen = !batch.isClosed && state.ring.head.close(at: batch.position)
    if wasOpen && released.isEmpty { return }
    lock.unlock()
    released.finish()
    if !wasOpen { lookAfter(batch) }
    lock.lock()
  }

  /// Looks whether a removal has seen a hazard that is gone now. The head was closed.
  private func lookAfter(_ batch: Batch) {
    lookAfter(batch.current.pointee.token)
    if batch.isClosed { lookAfter(batch.next.pointee.token) }
  }

  private func lookAfter(_ token: Token) {
    if Registration(index: token.index).id != token {
      PendingRemovals.callDidReturn(token)  //~ no_look_after_queued_call
    }
  }

  /// The end of a run, under the lock. If there is a worker, it may wait for its turn, and is
  /// expected to make room now. If calls are left, the program's loop is told so.
  ///
  /// - Parameter frame: That of the run; nil if the queue has no wake function.
  @inline(never)
  private func didEnd(_ frame: Frame?, _ thread: ThreadRecord, isInner: Bool) {
    // Another thread may have begun a run when this one had withdrawn its frame.
    if !isCurrent || isInner || state.runner != thread.storage { return }
    state.runner = nil
    let workerThread = state.workerThread.load(ordering: .relaxed)
    if !workerThread.isNone && worker == .running {
      state.consumer.store(workerThread, ordering: .relaxed)
    }
    if state.sleeperCount > 0 { wakeSleepers() }
    guard let frame, let wake = beginWake(frame) else { return }  //~ no_wake_after_run
    lock.unlock()
    finish(wake, frame)
    lock.lock()
  }
}
