import CMulticast
import MulticastShims
import Synchronization

extension Queue {
  /// What became of an attempt to queue a call.
  private enum Outcome { case queued, refused, notRecipient, full }

  /// Queues a call of a delegate, if there is room or room can be made. The delegate may have been
  /// removed: then nothing is queued.
  ///
  /// - Parameter frame: Retains the invocation's copy of the payload, from the first call that
  ///   needs one.
  /// - Returns: whether the call was queued.
  func append(_ token: Token, _ invocation: Invocation, _ frame: Frame) -> Bool {
    var payload = Payload(retainedBy: frame)
    if invocation.size > WaitingCall.inlineSize || invocation.size < 0 {
      // Not under the lock: it may be large.
      if payload == nil, let bytes = invocation.payload {
        payload = Payload(copying: bytes, size: invocation.size)
        payload?.pass(to: frame)
      }
      if payload == nil { return refuse(token) }
    }
    var hasWaited = false
    while true {
      lock.lock()
      let wasEmpty = state.ring.count == 0
      let outcome = tryAppend(token, invocation, payload)
      if outcome == .notRecipient && hasWaited && isCurrent { state.statistics.refused &+= 1 }
      checkInvariants()
      let isBlocked = outcome == .full
      if isBlocked { state.blockedCount &+= 1 }
      let isFirst = wasEmpty && state.ring.count > 0
      let hasSleepers = isFirst && state.sleeperCount > 0
      lock.unlock()
      // Not under the lock, which is the first thing that they need.
      if hasSleepers { wakeSleepers() }
      if !isBlocked { return outcome == .queued }

      hasWaited = true
      let mayContinue = Waits.sleep(for: .room(consumer: consumer)) { canRetry(token) }
      lock.lock()
      state.blockedCount &-= 1
      lock.unlock()
      if mayContinue != .ok { return refuse(token, afterWaiting: true) }
    }
  }

  private var consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>> {
    withUnsafePointer(to: storage.pointee.consumer) { UnsafeMutablePointer(mutating: $0) }
  }

  /// Whether there is room now, or none is needed any more.
  private func canRetry(_ token: Token) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard let details = recipient(token) else { return true }
    return hasRoom || replaceable(details) != nil
  }

  /// Counts a call that is not queued.
  private func refuse(_ token: Token, afterWaiting: Bool = false) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard let details = recipient(token) else {
      if afterWaiting && isCurrent { state.statistics.refused &+= 1 }
      return false
    }
    let isWaiting = keepsFirst(details) && replaceable(details) != nil
    if !isWaiting { state.statistics.refused &+= 1 }
    return false
  }

  // MARK: - Under the lock

  /// The details of a registration that is live and delivers here.
  ///
  /// A remover makes it retired first, and then calls `retract`, which takes this lock. So what is
  /// queued for a registration that is live here is found there.
  private func recipient(_ token: Token) -> UnsafeMutablePointer<RegistrationDetails>? {
    let registration = Registration(index: token.index)
    guard isCurrent, registration.id == token, let details = registration.details,
      delivers(details)
    else { return nil }
    return details
  }

  /// Whether a registration delivers to this queue, and not to another that had the slot.
  private func delivers(_ details: UnsafeMutablePointer<RegistrationDetails>) -> Bool {
    let membership = RegistrationDetails.membership(of: details, .recipient)
    return membership.pointee.lifetime == state.recipients
  }

  private var hasRoom: Bool { state.ring.count < UInt64(state.capacity) }  //~ more_calls_than_room

  /// The waiting call of a delegate that has one at most; nil if it has none, or may have several.
  @inline(__always)
  private func replaceable(
    _ details: UnsafeMutablePointer<RegistrationDetails>
  ) -> UnsafeMutablePointer<WaitingCall>? {
    //~ two_calls_of_one
    let hasOne = details.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) != 0
    return hasOne ? state.ring.newest(of: details) : nil
  }

  /// Whether a call of the delegate that waits is not replaced by a newer one.
  private func keepsFirst(_ details: UnsafeMutablePointer<RegistrationDetails>) -> Bool {
    details.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) == MULTICAST_ONCE
  }

  private func tryAppend(
    _ token: Token, _ invocation: Invocation, _ payload: Payload?
  ) -> Outcome {
    guard let details = recipient(token) else { return .notRecipient }
    if let waiting = replaceable(details) {
      if keepsFirst(details) { return .refused }
      waiting.pointee.sharedPayload?.release()
      WaitingCall.setPayload(of: waiting, invocation, payload)
      state.statistics.queued &+= 1
      state.statistics.coalesced &+= 1
      return .queued
    }

    let before = state.ring.count
    if !hasRoom {
      switch state.overflow {
      case MULTICAST_OVERFLOW_BLOCK.rawValue: return .full
      case MULTICAST_OVERFLOW_DROP_OLDEST.rawValue:
        state.ring.takeFirst()?.pointee.sharedPayload?.release()
        state.statistics.dropped &+= 1  //~ drop_not_counted
      default:
        state.statistics.refused &+= 1
        return .refused
      }
    }
    WaitingCall.setPayload(of: state.ring.append(token, details), invocation, payload)
    let now = state.ring.count
    state.statistics.queued &+= 1
    if now > state.statistics.highest { state.statistics.highest = now }
    updateDescriptor(from: before)
    return .queued
  }
}
