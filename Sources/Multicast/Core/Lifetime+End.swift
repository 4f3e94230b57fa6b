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

    var cleanup = Cleanup()
    while let member = firstLive() { unlink(member, &cleanup) }
    let status = cleanup.finish(nil)
    defer { finishOne() }
    return status == .system ? status : waitForOthers(after: cleanup, status)
  }

  /// Waits for members that others have removed: for their calls and, where that cannot close a cycle,
  /// for their releases, which may be code that is to be unloaded.
  private func waitForOthers(after cleanup: Cleanup, _ status: Status) -> Status {
    if isFinished { return status }
    let isInside = cleanup.thread?.storage.pointee.depth ?? 0 > 0 || shims_get_release_depth() > 0
    if !isInside && !Process.isChild {
      let isOver = Departures.waitUntil(by: cleanup.thread) { isFinished || Ticket.isBroken }
      return isFinished ? .ok : isOver ? .system : .pending
    }
    let settled = Departures.settle(after: cleanup) { _, token in isLeaving(token) }
    if settled == .system { return .system }
    return isFinished || Process.isChild && settled == .ok ? status : .pending
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
