extension Lifetime {
  /// Ends a lifetime and removes its members from wherever they are.
  static func end(_ handle: UInt64) -> Status {
    guard let lifetime = Lifetime(slotOf: handle) else { return .invalidHandle }
    return lifetime.end(handle)
  }

  private func end(_ handle: UInt64) -> Status {
    lock.lock()
    guard id == handle else {
      lock.unlock()
      return .invalidHandle
    }
    id = Handle.change(handle, to: Handle.Kind.leaving)
    storage.pointee.enders &+= 1
    lock.unlock()

    var cleanup = Cleanup()
    while let member = firstLive() { unlink(member, &cleanup) }
    var status = cleanup.finish(nil)
    if status != .system {
      let settled = Departures.settle(after: cleanup) { _, token in isLeaving(token) }
      if settled != .ok { status = settled }
    }

    lock.lock()
    storage.pointee.enders &-= 1
    vacateIfGone()
    lock.unlock()
    return status
  }

  private func firstLive() -> Registration? {
    lock.lock()
    defer { lock.unlock() }
    let first = storage.pointee.live
    return first == 0 ? nil : Registration(index: first &- 1)
  }

  private func unlink(_ member: Registration, _ cleanup: inout Cleanup) {
    let stripe = Stripe(of: member.owner)
    stripe.lock()
    defer { stripe.unlock() }
    // Under this lock it is live, or somebody else has removed it since. It may even be another by
    // now; but not another of this lifetime, which takes none any more.
    guard Handle.kind(of: member.id) == Handle.Kind.registration,
      let other = Lifetime(of: member), other.index == index
    else { return }
    let multicast = Multicast(slot: member.owner)
    let list = multicast.list.unsafelyUnwrapped
    multicast.unlink(member.storage.pointee.link, of: list, &cleanup)
    multicast.tidy(&cleanup)
  }

  /// Whether a token is that of a member that is removed and may be in a call.
  private func isLeaving(_ token: UInt64) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let stripe = Stripe(of: member.owner)
    stripe.lock()
    defer { stripe.unlock() }
    return member.id == Handle.change(token, to: Handle.Kind.leaving)
      && Lifetime(of: member)?.index == index
  }
}
