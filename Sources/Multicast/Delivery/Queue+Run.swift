import MulticastHeader
import MulticastShims
import Synchronization

extension Queue {
  /// Executes waiting calls on this thread.
  ///
  /// - Parameter limit: The maximum number of calls; 0 means the number of calls waiting now.
  /// - Returns: the number of executed calls, or a negative status code.
  @_optimize(speed)
  static func run(_ handle: Handle, limit: UInt) -> Int64 {
    guard let queue = Queue(slotOf: handle) else { return Status.invalidHandle.count }
    guard let thread = ThreadRecord.current else { return queue.enterAndRun(limit) }
    return queue.run(by: thread, limit: limit)
  }

  @inline(never)
  private func enterAndRun(_ limit: UInt) -> Int64 {
    guard let thread = ThreadRegistry.enter() else {
      runWasCalled()
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, true) }
    return run(by: thread, limit: limit)
  }

  // MARK: - Under the lock

  /// Whether this thread may run the queue: either the queue has no worker, or this thread is the
  /// worker.
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

  /// Whether no other thread is running the queue. A thread that has ended inside a call does not
  /// count.
  func isFree(for thread: ThreadRecord) -> Bool {
    guard let runner = state.runner else { return true }
    return thread.storage == runner || !ThreadRecord(runner).isInside(target)
  }

  // MARK: - A run

  @inline(__always)
  private func run(by thread: ThreadRecord, limit: UInt) -> Int64 {
    if _slowPath(thread.isInside) { return runInside(by: thread, limit: limit) }
    let calls = thread.batch.assumingMemoryBound(to: WaitingCall.self)
    lock.lockInline()
    if isUndisturbed(for: thread) {
      if state.ring.count == 0 {
        lock.unlockInline()
        return 0
      }
      if let call = onlyCall(limit) { return run(call, calls, by: thread) }
    }
    let capacity = ThreadRecord.batchSize / MemoryLayout<WaitingCall>.stride
    return run(by: thread, limit, calls, UInt64(capacity))
  }

  /// Runs the queue inside another call. Copies only one call at a time to use little stack.
  @inline(never)
  private func runInside(by thread: ThreadRecord, limit: UInt) -> Int64 {
    // The alignment is 16, because a call contains its small payload, which needs this alignment.
    withUnsafeTemporaryAllocation(byteCount: MemoryLayout<WaitingCall>.size, alignment: 16) {
      let call = $0.baseAddress.unsafelyUnwrapped
      lock.lock()
      return run(by: thread, limit, call.bindMemory(to: WaitingCall.self, capacity: 1), 1)
    }
  }

  /// Whether this run has nothing to do except execute calls, which is the usual case.
  @inline(__always)
  private func isUndisturbed(for thread: ThreadRecord) -> Bool {
    isCurrent && state.worker == .none && state.settings.wake == nil && state.descriptor < 0
      && state.sleeperCount == 0 && !state.isRoomAwaited
      && (state.runner == nil || state.runner == thread.storage)
  }

  /// The call to execute if the run is for a single call and can take the fast path; otherwise nil.
  @inline(__always)
  private func onlyCall(_ limit: UInt) -> WaitingCall.Address? {
    guard limit == 1 || limit == 0 && state.ring.count == 1, let call = state.ring.first,
      !call.pointee.isShared, !call.pointee.details.pointee.isProtected
    else { return nil }
    return call
  }

  /// Fast path: executes a single call, and skips the checks needed only for several calls.
  @inline(__always)
  private func run(
    _ next: WaitingCall.Address, _ call: WaitingCall.Address,
    by thread: ThreadRecord
  ) -> Int64 {
    let frame = thread.push().unsafelyUnwrapped  // the thread is in no call
    call.pointee = next.pointee
    frame.publish(target)
    frame.setHazard(call.pointee.token)  //~ no_hazard_alone
    state.runner = thread.storage
    state.consumer.store(thread.identity, ordering: .relaxed)
    let position = state.ring.openBehindFirst()
    raiseFastPathEnd()
    checkInvariants()
    lock.unlockInline()
    make(call, WaitingCall.ownInvocation(of: call))
    return endClosed(call, at: position, frame, thread, 1)
  }

  /// Ends a run without the lock, if nothing needs this thread's attention.
  @inline(__always)
  private func endClosed(
    _ call: WaitingCall.Address, at position: UInt64, _ frame: Frame,
    _ thread: ThreadRecord, _ executed: UInt
  ) -> Int64 {
    frame.clearHazard()
    // Withdraw the frame before closing the head. A thread waiting to run the queue closes the head
    // and then checks the frames. So either it finds no frame, or this thread finds the head
    // closed.
    thread.pop(frame)
    if !state.ring.head.close(at: position) { didEndClosed(call, thread) }
    return Int64(truncatingIfNeeded: executed)
  }

  /// Executes waiting calls one after another. The caller holds the lock, and this function
  /// releases it.
  ///
  /// Several calls are copied without releasing the lock. The first of them is taken out under the
  /// lock. The others are taken out without the lock, as long as the head of the ring is open (see
  /// `RingHead`).
  ///
  /// The hazard of a call is set before the call is taken out. A removal closes the head under the
  /// lock and then checks the hazards, so it finds the hazard of each call that has been taken out.
  /// After a call, the run replaces or clears the hazard before it uses the head again. So either
  /// the removal finds no hazard, or the run finds the head closed, takes the lock, and checks
  /// whether the registration is live.
  ///
  /// - Parameters:
  ///   - given: The maximum number of calls to execute; 0 means the number of calls waiting now. A
  ///     call that is not executed because its context is dead does not count.
  ///   - calls: The buffer for copies of calls.
  @_optimize(speed)
  private func run(
    by thread: ThreadRecord, _ given: UInt, _ calls: WaitingCall.Address,
    _ capacity: UInt64
  ) -> Int64 {
    guard isCurrent, isRunnable(by: thread), isFree(for: thread) else { return refuse(.state) }
    guard let frame = thread.push() else { return refuse(.limit) }
    renewWake()
    // The number of calls that this run may still execute.
    let limit = given == 0 ? UInt(state.ring.count) : given
    var left = limit
    // Whether the run may end without taking the lock. If the queue has a wake function, the run
    // ends under the lock, because it must call the function if calls are left.
    let mayEndClosed = capacity > 1 && state.settings.wake == nil
    // Whether this run is nested in another run of the queue on the same thread.
    let isInner = capacity == 1 && isRunning(on: thread)
    frame.publish(target)
    state.runner = thread.storage
    repeat {
      // A descriptor has to change together with the ring. So if there is a descriptor, take out
      // the ring's last call under the lock.
      let hasDescriptor = state.descriptor >= 0
      let before = hasDescriptor ? state.ring.count : 0
      // If threads are waiting for room, take out each call under the lock and wake one of these
      // threads for it.
      let isRoomAwaited = state.isRoomAwaited
      let most = isRoomAwaited ? 1 : min(UInt64(left), capacity)
      guard
        let (end, first) = state.ring.takeFirst(calls, atMost: most, keepsLast: hasDescriptor)
      else { break }
      var position = first
      raiseFastPathEnd()
      if hasDescriptor { updateDescriptor(from: before) }
      checkInvariants()
      calls.pointee.sharedPayload?.pass(to: frame)
      frame.setHazard(calls.pointee.token)
      // If a thread is sleeping, it may be waiting to run the queue. So leave the head closed,
      // because this run then takes the lock at its end and wakes that thread.
      if state.sleeperCount == 0 && !isRoomAwaited { state.ring.head.open(at: position) }
      // From now on, this thread is expected to make room.
      state.consumer.store(thread.identity, ordering: .relaxed)
      lock.unlockInline()
      if isRoomAwaited { wakeForRoom() }  //~ blocked_not_woken

      // Execute the batch's calls as long as they can be taken out without the lock. After the
      // loop, the frame still contains the last executed call's payload, and its hazard is the
      // token of that call or of the next call.
      var call = calls
      var refused: WaitingCall.Address? = nil
      var isMade = make(call)
      while isMade {
        left &-= 1
        let next = call + 1
        if next == end { break }
        frame.setHazard(next.pointee.token)  //~ no_hazard_in_batch
        if !state.ring.head.take(at: position) {
          refused = next
          break
        }
        position &+= 1
        call = next
        isMade = makeOwn(call)
      }

      if left == 0 && isMade && refused == nil && !call.pointee.isShared && mayEndClosed {
        return endClosed(call, at: position, frame, thread, limit)
      }
      lockAgain(after: call, isMade: isMade, refused, position, frame)
      // A call may have destroyed the queue, or started or stopped a worker.
    } while left > 0 && isCurrent && isRunnable(by: thread)
    didEnd(frame, thread, isInner: isInner)
    thread.pop(frame)
    lock.unlock()
    return Int64(truncatingIfNeeded: limit &- left)
  }

  /// Returns from a run that cannot begin. The program's event loop may have started the run
  /// because of a wake-up. That wake-up is now lost, so the next call must notify the event loop
  /// again. The caller holds the lock, and this function releases it.
  @inline(never)
  private func refuse(_ status: Status) -> Int64 {
    defer { lock.unlock() }
    guard isCurrent else { return Status.invalidHandle.count }
    renewWake()
    return status.count
  }

  /// Whether this thread is running the queue. `runner` may be out of date, because its thread may
  /// have ended the run. That thread may also have ended inside a call, and this thread may have
  /// taken over its record.
  private func isRunning(on thread: ThreadRecord) -> Bool {
    state.runner == thread.storage && thread.isInside(target)
  }

  /// Executes a call that has been taken out and whose hazard is set. Returns false if the call is
  /// not executed, because the context is dead or the delegate has been removed.
  private func make(_ call: WaitingCall.Address) -> Bool {
    if call.pointee.details.pointee.isProtected { return makeProtected(call) }
    make(call, WaitingCall.invocation(of: call))
    return true
  }

  /// Executes a call whose payload is not shared.
  @inline(__always)
  private func makeOwn(_ call: WaitingCall.Address) -> Bool {
    if call.pointee.details.pointee.isProtected { return makeProtected(call) }
    make(call, WaitingCall.ownInvocation(of: call))
    return true
  }

  @inline(__always)
  private func make(_ call: WaitingCall.Address, _ invocation: Invocation) {
    let details = call.pointee.details
    //~ called_under_lock
    _ = invocation(details.pointee.function.unsafelyUnwrapped, details.pointee.context)
  }

  private func makeProtected(_ call: WaitingCall.Address) -> Bool {
    let (token, details) = (call.pointee.token, call.pointee.details)
    let invocation = WaitingCall.invocation(of: call)
    let function = details.pointee.function.unsafelyUnwrapped
    let registration = Registration(index: token.index)
    // `isWatched` is never cleared, so the watch may already have been removed.
    let target = details.pointee.isWatched ? Watch.target(of: token) : .none
    let isWatched = details.pointee.isWatched && Watch.isSet(for: target)
    RaceDetector.willCall(registration.storage)
    RaceDetector.happensAfter(details)
    RaceDetector.happensAfter(UnsafeMutableRawPointer(mutating: invocation.payload))
    defer { RaceDetector.didCall(registration.storage) }
    if isWatched {
      shims_probe_queue_run(handle.rawValue, token.rawValue, UInt64(invocation.event))
    }
    return registration.callProtected(token, ContextLock(registration), isOnce: true) {
      (context, _) in
      if !isWatched { return _ = invocation(function, context) }
      _ = Watch.watching(registration, token, of: target, invocation.event, context) {
        invocation(function, context)
      }
    } == .called
  }

  private func didEndClosed(_ call: WaitingCall.Address, _ thread: ThreadRecord) {
    lookAfter(call.pointee.token)
    lock.lock()
    didEnd(nil, thread, isInner: false)
    lock.unlock()
  }

  /// Performs the pending cleanup after a batch's last executed call, and takes the lock.
  ///
  /// - Parameters:
  ///   - refused: The next call, if this thread tried to take it out and found the head closed.
  ///   - position: The position of the head after the last call taken out by this run.
  @inline(never)
  private func lockAgain(
    after call: WaitingCall.Address, isMade: Bool,
    _ refused: WaitingCall.Address?, _ position: UInt64, _ frame: Frame
  ) {
    var released = ReleasedPayloads()
    lock.lock()
    // Take the payload out of the frame under the lock. Otherwise another thread could fork right
    // after the payload has been taken out, and no frame in the child would contain the reference.
    released.release(Payload.take(from: frame), isMade: isMade)
    frame.clearHazard()  //~ hazard_not_cleared
    if !isMade && isCurrent { state.statistics.cancelled &+= 1 }
    // If the slot has been reused, the head is never open at this position, because positions only
    // increase.
    let wasOpen = refused == nil && state.ring.head.close(at: position)
    if wasOpen && released.isEmpty { return }
    lock.unlock()
    released.cleanUp()
    if !wasOpen {
      lookAfter(call.pointee.token)
      if let refused { lookAfter(refused.pointee.token) }
    }
    lock.lock()
  }

  /// Called after the head has been found closed. If the registration is no longer live, wakes the
  /// removing threads, because they may have seen a hazard that has since been cleared or replaced.
  private func lookAfter(_ token: Token) {
    //~ no_look_after_queued_call
    if !Registration.isLive(token) { PendingRemovals.callDidReturn(token) }
  }

  /// Performs the last steps of a run, under the lock. From now on, the worker, which may be
  /// waiting to run the queue, is expected to make room. If the queue is not empty, invokes the
  /// wake function to notify the program's event loop.
  ///
  /// - Parameter frame: The frame of the run; nil if the queue has no wake function.
  private func didEnd(_ frame: Frame?, _ thread: ThreadRecord, isInner: Bool) {
    // Another thread may have begun a run after this thread withdrew its frame.
    if !isCurrent || isInner || state.runner != thread.storage { return }
    state.runner = nil
    let workerThread = state.workerThread.load(ordering: .relaxed)
    if !workerThread.isNone && worker == .running {
      state.consumer.store(workerThread, ordering: .relaxed)
    }
    if state.sleeperCount > 0 { wakeSleepers() }
    guard let frame, let wake = beginWake(frame) else { return }  //~ no_wake_after_run
    lock.unlock()
    callWake(wake, frame)
    lock.lock()
  }
}
