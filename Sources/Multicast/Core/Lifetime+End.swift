import MulticastShims
import Synchronization

extension Lifetime {
  /// Ends a lifetime and removes its members from wherever they are.
  static func end(_ handle: UInt64, as role: Membership.Role = .owned) -> Status {
    guard let lifetime = Lifetime(slotOf: handle), lifetime.role == role else {
      return .invalidHandle
    }
    return lifetime.end(handle)
  }

  private func end(_ handle: UInt64) -> Status {
    lock.lock()
    guard id == handle else {
      lock.unlock()
      return .invalidHandle
    }
    id = Handle.change(handle, to: Handle.Kind.leaving)
    // Release: who then finds one left finds that the lifetime has ended, and wakes us.
    storage.pointee.unfinished.wrappingAdd(1, ordering: .releasing)
    lock.unlock()

    let (cleanup, status) = removeMembers()
    defer { finishOne() }
    return status == .system ? status : waitForOthers(after: cleanup, status)
  }

  private func removeMembers() -> (Cleanup, Status) {
    var cleanup = Cleanup()
    while let member = firstLive() { unlink(member, &cleanup) }
    return (cleanup, cleanup.finish(nil))
  }

  /// In the child of a fork: does what threads of the parent were in the middle of, but the
  /// waiting.
  static func finishAllInChild() {
    pool.forEach(in: directory) { slot, index in
      let lifetime = Lifetime(slot: slot, index: index)
      guard Handle.kind(of: lifetime.id) == Handle.Kind.leaving, lifetime.firstLive() != nil else {
        return
      }
      _ = lifetime.removeMembers()
      lifetime.finishOne()
    }
  }

  /// Waits for members that others have removed: for their calls and, where that cannot close a
  /// cycle, for their releases, which may be code that is to be unloaded.
  private func waitForOthers(after cleanup: Cleanup, _ status: Status) -> Status {
    if isFinished { return status }
    let settled = Departures.settle(after: cleanup) { _, token in isLeaving(token) }
    if settled == .system { return .system }
    let isInside = ThreadRecord.current?.isInside ?? false
    if settled == .ok && !isInside && shims_get_release_depth() == 0 {
      // What the parent's threads were in the middle of has no end in the child of a fork.
      if storage.pointee.process != Process.generation { return status }
      let isOver = Departures.waitForReleases { isFinished || Ticket.isBroken }
      return isFinished ? .ok : isOver ? .system : .pending
    }
    return isFinished ? status : .pending
  }

  /// Whether there is nothing left but the thread that ends it. Acquire: pairs with `finishOne`.
  private var isFinished: Bool { storage.pointee.unfinished.load(ordering: .acquiring) == 1 }

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
      let other = Lifetime(of: member, as: role), other.index == index
    else { return }
    let multicast = Multicast(slot: member.owner)
    let list = multicast.list.unsafelyUnwrapped
    multicast.unlink(member.storage.pointee.link, of: list, &cleanup)
    multicast.tidy(&cleanup)
    multicast.checkInvariants()
  }

  /// Whether a token is that of a member that is removed and may be in a call.
  private func isLeaving(_ token: UInt64) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let stripe = Stripe(of: member.owner)
    stripe.lock()
    defer { stripe.unlock() }
    return member.id == Handle.change(token, to: Handle.Kind.leaving)
      && Lifetime(of: member, as: role)?.index == index
  }
}
