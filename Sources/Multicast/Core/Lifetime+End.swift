import MulticastShims
import Synchronization

extension Lifetime {
  /// Ends a lifetime, and removes its members from whatever multicasts they are in.
  ///
  /// - Parameter change: Made together with the end, under the lifetime's lock: a fork sees both, or
  ///   none. If it throws, the lifetime does not end.
  static func end(
    _ handle: Handle, as role: Membership.Role = .owned,
    with change: () throws(Status) -> Void = {}
  ) -> Status {
    guard let lifetime = Lifetime(slotOf: handle), lifetime.role == role else {
      return .invalidHandle
    }
    do throws(Status) {
      try lifetime.withLock(handle) { () throws(Status) in
        try change()
        lifetime.id = handle.changed(to: .retired)
        lifetime.beginToFinish()
      }
    } catch {
      return error
    }
    defer { lifetime.finishOne() }
    var removal = Removal()
    let own = lifetime.removeMembers(&removal)
    if own == .system || lifetime.isFinished { return own }  //~ lifetime_does_not_wait
    return lifetime.waitForOthers(&removal, own)
  }

  private func removeMembers(_ removal: inout Removal) -> Status {
    while let member = nextLive() { unlink(member, &removal) }
    return removal.finish().status
  }

  private func nextLive() -> Registration? {
    lock.lock()
    defer { lock.unlock() }
    return firstLive
  }

  private func unlink(_ member: Registration, _ removal: inout Removal) {
    let stripe = Stripe(of: member.owner)
    stripe.lock()
    defer { stripe.unlock() }
    // Under this lock it is live, or another thread has removed it since. The slot may even have
    // another occupant; but not one of this lifetime, which accepts no more members.
    guard member.id.kind == .registration, let other = Lifetime(of: member, as: role),
      other.index == index
    else { return }
    let multicast = Multicast(slot: member.owner)
    removal.unlink(member.place, of: multicast.list.unsafelyUnwrapped, in: multicast)
    multicast.compact(&removal)
    multicast.checkInvariants()
  }

  /// Waits for members that other threads have removed: for their calls, and for their release
  /// functions, which may be code that is about to be unloaded. It does not wait for release
  /// functions where that could close a cycle.
  ///
  /// - Parameter own: The result for those that this thread has removed.
  private func waitForOthers(_ removal: inout Removal, _ own: Status) -> Status {
    let others = removal.waitForPriorRemovals { _, token in isRetiredMember(token) }
    if others == .system { return .system }
    let isInside = ThreadRecord.current?.isInside ?? false
    if others == .ok && !isInside && shims_get_release_depth() == 0 {
      // In the child of a fork: what threads of the parent were doing does not end.
      if storage.pointee.process != Process.generation { return own }
      let isOver = Waits.sleepForReleases { isFinished || Epoch.isBroken }
      return isFinished ? .ok : isOver ? .system : .pending
    }
    return isFinished ? own : .pending
  }

  /// Whether a token is that of a member that is removed and may be in a call.
  private func isRetiredMember(_ token: Token) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let stripe = Stripe(of: member.owner)
    stripe.lock()
    defer { stripe.unlock() }
    return member.id == token.changed(to: .retired)
      && Lifetime(of: member, as: role)?.index == index
  }

  /// In the child of a fork: completes what threads of the parent were doing, except the waiting.
  static func finishAllInChild() {
    pool.forEach { slot, index in
      let lifetime = Lifetime(slot: slot, index: index)
      guard lifetime.id.kind == .retired, lifetime.nextLive() != nil else { return }
      var removal = Removal()
      _ = lifetime.removeMembers(&removal)
      lifetime.finishOne()
    }
  }
}
