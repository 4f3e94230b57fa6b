import CMulticast
import MulticastShims
import Synchronization

/// Taking calls in, and back: what the core asks for.
extension Queue {
  static let queueCall: Delivery.Queue = { slot, token, event, payload, size, frame in
    let invocation = Invocation(event: event, payload: payload, size: size)
    return Queue(slot: slot).append(
      token, invocation, in: frame.assumingMemoryBound(to: Frame.self))
  }

  static let letGoOfPayload: Delivery.LetGo = { Payload($0).letGo() }

  static let retractCalls: Delivery.Retract = { slot, extras in
    Queue(slot: slot).retract(extras.assumingMemoryBound(to: Extras.self))
  }

  /// What became of an attempt to take a call in.
  private enum Outcome { case queued, ignored, full }

  /// Has a call of a delegate wait, if there is room or room can be made.
  ///
  /// - Parameter frame: Has the invocation's copy of the payload, once one was needed.
  private func append(
    _ token: UInt64, _ invocation: Invocation, in frame: UnsafeMutablePointer<Frame>
  ) -> Bool {
    var payload = Payload(keptBy: frame)
    if invocation.size > WaitingCall.inlineSize || invocation.size < 0 {
      // Not under the lock: it may be large.
      if payload == nil, let bytes = invocation.payload {
        payload = Payload(copying: bytes, size: invocation.size)
        payload?.keep(in: frame)
      }
      if payload == nil { return refuse(token) }
    }
    while true {
      lock.lock()
      let wasEmpty = storage.pointee.ring.count == 0
      let outcome = tryAppend(token, invocation, payload)
      checkInvariants()
      let isBlocked = outcome == .full
      if isBlocked { storage.pointee.blocked &+= 1 }
      let isFirst = wasEmpty && storage.pointee.ring.count > 0
      let isAwaited = isFirst && storage.pointee.sleepers > 0
      lock.unlock()
      // Not under the lock, which is the first thing that they need.
      if isAwaited { wakeSleepers() }
      if !isBlocked { return outcome == .queued }

      let mayGoOn = Departures.waitUntil(other: consumer, isForRoom: true) {
        isNotFull(for: token)
      }
      lock.lock()
      storage.pointee.blocked &-= 1
      lock.unlock()
      if !mayGoOn { return refuse(token) }
    }
  }

  private var consumer: UnsafeMutablePointer<Atomic<UInt64>> {
    withUnsafePointer(to: storage.pointee.consumer) { UnsafeMutablePointer(mutating: $0) }
  }

  /// Whether there is a reason to try again: room, or that none is needed any more.
  private func isNotFull(for token: UInt64) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard let extras = recipient(token) else { return true }
    return hasRoom || replaceable(extras) != nil
  }

  private func refuse(_ token: UInt64) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard let extras = recipient(token) else { return false }
    let isThere = extras.pointee.flags & MULTICAST_ONCE != 0 && replaceable(extras) != nil
    if !isThere { storage.pointee.statistics.refused &+= 1 }
    return false
  }

  // MARK: - Under the lock

  /// The extras of a delegate that is live and delivers here. Who removes it comes to `retract`
  /// afterwards, so to this lock: what is taken in for a delegate that is found live here is found
  /// there.
  private func recipient(_ token: UInt64) -> UnsafeMutablePointer<Extras>? {
    let registration = Registration(index: Handle.index(of: token))
    guard isCurrent, registration.id == token,
      let extras = registration.storage.pointee.extras,
      Extras.membership(of: extras, .recipient).pointee.lifetime == storage.pointee.recipients
    else { return nil }
    return extras
  }

  private var hasRoom: Bool {
    storage.pointee.ring.count < UInt64(storage.pointee.capacity)
  }

  /// The waiting call of a delegate that has one at most; nil where there is none, or may be more.
  @inline(__always)
  private func replaceable(
    _ extras: UnsafeMutablePointer<Extras>
  ) -> UnsafeMutablePointer<WaitingCall>? {
    let hasOne = extras.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) != 0
    return hasOne ? storage.pointee.ring.newest(of: extras) : nil
  }

  private func tryAppend(
    _ token: UInt64, _ invocation: Invocation, _ payload: Payload?
  ) -> Outcome {
    guard let extras = recipient(token) else { return .ignored }
    if let waiting = replaceable(extras) {
      if extras.pointee.flags & MULTICAST_ONCE != 0 { return .ignored }
      waiting.pointee.sharedPayload?.letGo()
      WaitingCall.setPayload(of: waiting, invocation, payload)
      storage.pointee.statistics.queued &+= 1
      storage.pointee.statistics.coalesced &+= 1
      return .queued
    }

    let before = storage.pointee.ring.count
    if !hasRoom {
      switch storage.pointee.overflow {
      case MULTICAST_OVERFLOW_BLOCK: return .full
      case MULTICAST_OVERFLOW_DROP_OLDEST:
        storage.pointee.ring.takeFirst()?.pointee.sharedPayload?.letGo()
        storage.pointee.statistics.dropped &+= 1
      default:
        storage.pointee.statistics.refused &+= 1
        return .ignored
      }
    }
    WaitingCall.setPayload(of: storage.pointee.ring.append(token, extras), invocation, payload)
    let now = storage.pointee.ring.count
    storage.pointee.statistics.queued &+= 1
    if now > storage.pointee.statistics.highest { storage.pointee.statistics.highest = now }
    changed(from: before)
    return .queued
  }

  // MARK: - Taking back

  /// Takes back the calls of a delegate that is not live any more. A call of it that is being run
  /// was named, under this lock, before: who looks at the frames afterwards finds it.
  private func retract(_ extras: UnsafeMutablePointer<Extras>) {
    lock.lock()
    // The queue may have been destroyed, and the slot belong to another.
    let isOurs =
      Extras.membership(of: extras, .recipient).pointee.lifetime == storage.pointee.recipients
    if isOurs {
      let before = storage.pointee.ring.count
      let taken = storage.pointee.ring.takeAll(of: extras)
      storage.pointee.statistics.retracted &+= taken
      if taken > 0 { changed(from: before) }
      checkInvariants()
    }
    let isAwaited = storage.pointee.blocked > 0
    lock.unlock()
    if isAwaited { Departures.wake() }
  }
}
