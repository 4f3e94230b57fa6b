import MulticastHeader
import MulticastShims
import Synchronization

extension Queue {
  /// The result of an attempt to queue a call for an invocation.
  enum EnqueueResult: UInt8 {
    case queued, refused
    /// The delegate has been removed, or is called only once and already has a waiting call.
    case leftOut
    /// Returned only by `tryAppend`: the call has no recipient, or there is no room yet.
    case notRecipient, full
  }

  /// Queues a call whose payload is too large to be stored in the call.
  ///
  /// - Parameter frame: The frame that retains the invocation's copy of the payload. The copy is
  ///   made when the first call needs it.
  func enqueueLarge(_ token: Token, _ invocation: Invocation, _ frame: Frame) -> EnqueueResult {
    if Payload(retainedBy: frame) == nil, let bytes = invocation.payload {
      (try? copy(bytes, size: invocation.size))?.pass(to: frame)
    }
    guard let payload = Payload(retainedBy: frame) else { return refuse(token) }
    return enqueue(token, invocation, sharing: payload, frame)
  }

  /// Copies a payload, into the queue's reserve if it has a vacant block. The caller owns the only
  /// reference to the copy.
  func copy(_ bytes: UnsafeRawPointer, size: Int) throws(Status) -> Payload {
    // Relaxed is enough, because `takeReserved` reads the field again under the lock. The bytes are
    // copied without the lock, because there may be many of them.
    if state.reserve.load(ordering: .relaxed) != nil, let place = takeReserved(size) {
      return Payload(copying: bytes, size: size, to: place)
    }
    return try Payload(copying: bytes, size: size)
  }

  private func takeReserved(_ size: Int) -> UnsafeMutableRawPointer? {
    lock.lock()
    defer { lock.unlock() }
    return state.reserve.load(ordering: .relaxed).flatMap { PayloadReserve($0).take(for: size) }
  }

  /// Fast path: takes the lock and queues a call with a small payload.
  ///
  /// - Returns: false if the call must take the slow path. The lock is then still held, and nothing
  ///   has changed.
  @inline(__always)
  func enqueueInFastPath(
    _ registration: Registration, _ token: Token, _ invocation: Invocation
  ) -> Bool {
    lock.lockInline()
    guard state.ring.tail < state.fastPathEnd, registration.id.isLive(as: token),
      let details = registration.details, delivers(details), !hasOne(details)
    else { return false }
    WaitingCall.setPayload(of: state.ring.append(token, details), invocation)
    checkInvariants()
    lock.unlockInline()
    return true
  }

  /// Queues a call to a delegate, if the delegate has not been removed and there is room or room
  /// can be made.
  ///
  /// - Parameter payload: The payload that the call shares with other calls; nil if the
  ///   invocation's payload is small enough to be stored in the call.
  func enqueue(
    _ token: Token, _ invocation: Invocation, sharing payload: Payload?, _ frame: Frame
  ) -> EnqueueResult {
    lock.lock()
    return enqueueLocked(token, invocation, sharing: payload, frame)
  }

  /// Like `enqueue`, but the caller holds the lock, and this function releases it.
  @_optimize(speed)
  func enqueueLocked(
    _ token: Token, _ invocation: Invocation, sharing payload: Payload?, _ frame: Frame
  ) -> EnqueueResult {
    var hasWaited = false
    while true {
      var released = ReleasedPayloads()
      let attempt = tryAppend(token, invocation, payload, &released)
      if attempt == .notRecipient && hasWaited && isCurrent { state.statistics.refused &+= 1 }
      let hasSleepers = attempt == .queued && state.isArrivalAwaited
      if hasSleepers { state.isArrivalAwaited = false }
      let wake = attempt == .queued ? beginWake(frame) : nil
      // This thread was woken because there was room. It may not have used that room, so if there
      // is still room, wake another waiting thread.
      let leavesRoom = hasWaited && isCurrent && state.isRoomAwaited && hasRoom
      updateFastPathEnd()
      checkInvariants()
      lock.unlock()
      if leavesRoom { wakeForRoom() }
      // Wake the threads after releasing the lock, because a woken thread first takes the lock.
      if hasSleepers { wakeSleepers() }
      // Call the wake function before the cleanup, because a payload's release function may destroy
      // the queue.
      if let wake { callWake(wake, frame) }
      released.cleanUp()
      if attempt != .full { return attempt == .notRecipient ? .leftOut : attempt }

      hasWaited = true
      let mayContinue = Waits.sleep(for: .room(consumer: consumer)) { canRetry(token) }
      if mayContinue != .ok { return refuse(token, afterWaiting: true) }
      lock.lock()
    }
  }

  /// Whether the thread can stop waiting, because there is room or its call needs none. If it
  /// cannot, this function makes sure that the thread is woken later.
  private func canRetry(_ token: Token) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard let details = recipient(token) else { return true }
    // Close the head before the check, so that any later operation that makes room takes the lock.
    state.ring.close()
    if hasRoom || replaceable(details) != nil { return true }
    state.isRoomAwaited = true
    return false
  }

  /// Counts a call that could not be queued, and returns the result.
  func refuse(_ token: Token, afterWaiting: Bool = false) -> EnqueueResult {
    lock.lock()
    defer { lock.unlock() }
    guard let details = recipient(token) else {
      if afterWaiting && isCurrent { state.statistics.refused &+= 1 }
      return .leftOut
    }
    if keepsFirst(details) && replaceable(details) != nil { return .leftOut }
    state.statistics.refused &+= 1
    return .refused
  }

  // MARK: - Under the lock

  /// The details of a registration, if it is live and delivers to this queue.
  ///
  /// A removal first retires the registration, and then calls `cancel`, which takes this lock. So
  /// if a call is queued because its registration is found live here, `cancel` finds that call.
  @inline(__always)
  private func recipient(_ token: Token) -> RegistrationDetails.Address? {
    let registration = Registration(index: token.index)
    guard registration.id.isLive(as: token), let details = registration.details,
      delivers(details)
    else { return nil }
    return details
  }

  /// Whether a registration delivers to this queue. False if the queue has been destroyed, or if
  /// the registration delivers to an earlier queue in the same slot.
  func delivers(_ details: RegistrationDetails.Address) -> Bool {
    let membership = RegistrationDetails.membership(of: details, .recipient)
    return membership.pointee.lifetime == state.recipients
  }

  //~ more_calls_than_room
  private var hasRoom: Bool { state.ring.count < UInt64(state.settings.capacity) }

  /// Whether at most one call to the delegate may be waiting in the queue.
  private func hasOne(_ details: RegistrationDetails.Address) -> Bool {
    //~ two_calls_of_one
    let hasOne = details.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) != 0
    return hasOne
  }

  /// The waiting call, if any, of a delegate that may have only one.
  private func replaceable(_ details: RegistrationDetails.Address) -> WaitingCall.Address? {
    hasOne(details) ? state.ring.newest(of: details) : nil
  }

  /// Whether to keep the delegate's waiting call instead of the new call.
  private func keepsFirst(_ details: RegistrationDetails.Address) -> Bool {
    details.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) == MULTICAST_ONCE
  }

  @_optimize(speed)
  private func tryAppend(
    _ token: Token, _ invocation: Invocation, _ payload: Payload?,
    _ released: inout ReleasedPayloads
  ) -> EnqueueResult {
    guard let details = recipient(token) else { return .notRecipient }
    if replaceable(details) != nil {
      if keepsFirst(details) { return .leftOut }
      state.ring.close()
    }
    // Check again now that the head is closed, because the waiting call may have been taken out
    // before.
    if let waiting = replaceable(details) {
      released.release(waiting.pointee.sharedPayload)
      WaitingCall.setPayload(of: waiting, invocation, payload)
      state.statistics.coalesced &+= 1
      return .queued
    }

    let before = state.ring.count
    if !hasRoom {
      switch state.settings.overflow {
      case MULTICAST_OVERFLOW_BLOCK.rawValue: return .full
      case MULTICAST_OVERFLOW_DROP_OLDEST.rawValue:
        state.ring.close()
        // Check again now that the head is closed, because calls may have been taken out before.
        if hasRoom { break }
        let oldest = state.ring.takeFirst()
        released.release(oldest?.pointee.sharedPayload)
        if let oldest, oldest.pointee.details.pointee.isWatched {
          Lock.watches.lock()
          CallStatistics.add(oldest.pointee.token, dropped: 1)
          Lock.watches.unlock()
        }
        state.statistics.dropped &+= 1  //~ drop_not_counted
      default:
        state.statistics.refused &+= 1
        return .refused
      }
    }
    state.ring.makeRoom()
    WaitingCall.setPayload(of: state.ring.append(token, details), invocation, payload)
    state.ring.updateKnownHead()
    let now = state.ring.countAtMost
    if now > state.statistics.highest { state.statistics.highest = now }
    updateDescriptor(from: before)
    return .queued
  }

  /// Recomputes `fastPathEnd` after the values it depends on have changed.
  private func updateFastPathEnd() {
    let isNews =
      state.isArrivalAwaited || state.needsWake || state.descriptor >= 0 && state.ring.count == 0
    state.fastPathEnd = isNews ? 0 : state.ring.knownHead
    raiseFastPathEnd()
  }

  /// Raises `fastPathEnd` after calls have been taken out. This requires that the need for
  /// notifications has not changed.
  @inline(__always)
  func raiseFastPathEnd() {
    if state.fastPathEnd == 0 { return }
    // The number of waiting calls is at most the number of places between the known head and the
    // tail, minus the gaps.
    let most = min(UInt64(state.settings.capacity), state.statistics.highest &+ state.ring.gaps)
    state.fastPathEnd = state.ring.knownHead &+ most
  }
}

/// Invocations that sleep until a full queue has room.
///
/// While such a thread sleeps, its key is the queue. The queue's lock guards the flag
/// `isRoomAwaited`. A thread that is about to sleep sets the flag while it also holds the waits'
/// lock. When the last of these threads is woken, the flag is cleared under both locks. As long as
/// the flag is set, the head of the ring is closed. So each call is taken out under the lock, and
/// one thread is woken for the place that becomes free. An operation that makes room for several
/// calls wakes all threads.
extension Queue {
  private var roomKey: Sleeper.Key { Wait.room(consumer: consumer).key }

  /// Wakes the thread that has been waiting longest for room. No lock is held.
  @inline(never)
  func wakeForRoom() {
    Waits.wakeOne(roomKey) { noRoomIsAwaited() }
  }

  /// Wakes all threads waiting for room. No lock is held.
  func wakeAllForRoom() {
    Waits.wake(roomKey) { noRoomIsAwaited() }
  }

  private func noRoomIsAwaited() {
    lock.lock()
    state.isRoomAwaited = false
    lock.unlock()
  }
}
