import MulticastShims
import Synchronization

extension Lifetime {
  /// Ends a lifetime, and removes its members from their multicasts.
  ///
  /// If another thread is already ending the lifetime, this function also waits for calls to the
  /// members, and then fails.
  ///
  /// - Parameter change: Called in the critical section that ends the lifetime, so that the child
  ///   of a fork finds both the end and this change, or neither. If it throws, the lifetime does
  ///   not end. The removal cleans up the payloads released by the change.
  static func end(
    _ handle: Handle, as role: Membership.Role = .owned, _ timeout: Timeout = .untilExit,
    with change: (inout ReleasedPayloads) throws(Status) -> Void = { _ in }
  ) -> Status {
    guard let lifetime = Lifetime(slotOf: handle, as: role) else { return .invalidHandle }
    var removal = Removal()
    do throws(Status) {
      if try lifetime.begin(handle, &removal.payloads, change) {
        return lifetime.complete(&removal, timeout)
      }
    } catch {
      return error
    }
    let status = lifetime.waitForOtherEnd(handle, timeout)
    return status == .system || status == .timeout ? status : .invalidHandle
  }

  /// Returns false if another thread is ending the lifetime.
  private func begin(
    _ handle: Handle, _ payloads: inout ReleasedPayloads,
    _ change: (inout ReleasedPayloads) throws(Status) -> Void
  ) throws(Status) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    if id == handle {
      try change(&payloads)
      id = handle.changed(to: .retired)
      // Count this thread. Release: pairs with the acquire in `removeUnfinished`, so that a thread
      // in that function finds that the lifetime has ended, and wakes the waiting threads.
      storage.pointee.unfinished.wrappingAdd(1, ordering: .releasing)  // order: end_of_lifetime
      return true
    }
    guard willWait(forEndOf: handle) else { throw .invalidHandle }
    return false
  }

  /// If another thread is ending the lifetime, counts this thread as waiting and returns true. The
  /// caller holds the lock.
  private func willWait(forEndOf handle: Handle) -> Bool {
    if id != handle.changed(to: .retired) { return false }
    storage.pointee.waiterCount.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Waits until no call to a member of an ended lifetime, and no member's release function, is
  /// running.
  static func waitForEnd(of handle: Handle, _ timeout: Timeout) -> Status {
    guard let lifetime = Lifetime(slotOf: handle, as: .owned) else { return .invalidHandle }
    lifetime.lock.lock()
    let (id, isEnding) = (lifetime.id, lifetime.willWait(forEndOf: handle))
    lifetime.lock.unlock()
    return isEnding ? lifetime.waitForOtherEnd(handle, timeout) : handle.end(foundAs: id)
  }

  private func complete(_ removal: inout Removal, _ timeout: Timeout) -> Status {
    defer { removeUnfinished() }
    let own = removeMembers(&removal, timeout)
    if own == .system || isFinished { return own }  //~ lifetime_does_not_wait
    return waitForOthers(&removal, own, timeout, .none)
  }

  /// Called while another thread is ending the lifetime. Helps that thread remove the members, and
  /// then waits.
  private func waitForOtherEnd(_ handle: Handle, _ timeout: Timeout) -> Status {
    var removal = Removal()
    // The other thread may have removed only some of the members so far.
    let own = removeMembers(&removal, timeout)
    if own == .system { return .system }
    return waitForOthers(&removal, own, timeout, handle.changed(to: .retired))
  }

  @_optimize(speed)
  private func removeMembers(_ removal: inout Removal, _ timeout: Timeout) -> Status {
    while let member = nextLive() { unlink(member, &removal) }
    let status = removal.complete(timeout).status
    removal.payloads.cleanUp()  // needed if there was no member
    return status
  }

  /// The next live member. Nil if the slot has been reused for a lifetime that has not ended.
  @_optimize(speed)
  private func nextLive() -> Registration? {
    lock.lock()
    defer { lock.unlock() }
    return id.kind == .retired ? firstLive : nil
  }

  @_optimize(speed)
  private func unlink(_ member: Registration, _ removal: inout Removal) {
    let (stripe, id) = member.lockStripe()
    // Under the stripe's lock, either the registration is live or another thread has removed it.
    // Its slot may even have been reused, but not for a member of this lifetime, because the
    // lifetime accepts no new members.
    guard id.kind == .registration || id.kind == .special,
      let other = Lifetime(of: member, as: role),
      other.index == index, other.id.kind == .retired
    else { return stripe.unlock() }
    removal.unlink(member, unlocking: stripe)
  }

  /// Waits for the calls and release functions of members that other threads have removed, because
  /// the caller may be about to unload their code. Does not wait for release functions if waiting
  /// could close a cycle.
  ///
  /// - Parameters:
  ///   - own: The result for the members removed by this thread.
  ///   - retired: The handle that stays in the slot until another thread has finished ending the
  ///     lifetime. It is `.none` if this thread itself is ending the lifetime. This function then
  ///     waits until the last member has been released.
  private func waitForOthers(
    _ removal: inout Removal, _ own: Status, _ timeout: Timeout, _ retired: Handle
  ) -> Status {
    func isOver() -> Bool { retired == .none ? isFinished : id != retired }
    let others = removal.waitForPriorRemovals(.members(self), timeout)
    if others == .system { return .system }
    let isInside = ThreadRecord.current?.isInside ?? false
    if others == .ok && !isInside && shims_get_release_depth() == 0 {
      // In the child of a fork, the parent's threads do not exist, so they never finish their work
      // on the lifetime.
      let process = storage.pointee.process.load(ordering: .relaxed)
      if process != Fork.generation { return own }
      let status = Waits.sleep(for: .releases, with: key, timeout) { isOver() || Fence.isBroken }
      if isOver() { return .ok }
      return status == .ok ? .system : status
    }
    if isOver() { return own }
    return own == .timeout || others == .timeout ? .timeout : .pending
  }

  /// Whether a token refers to a registration that delivers or has delivered to a queue.
  static func isMember(_ token: Token, ofQueue queue: Handle) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let (stripe, id) = member.lockStripe()
    defer { stripe.unlock() }
    return id.changed(to: .registration) == token
      && Lifetime(of: member, as: .recipient)?.storage.pointee.queue == queue
  }

  /// Whether a token refers to a member that has been removed but may still be in a call.
  func isRetiredMember(_ token: Token) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let (stripe, id) = member.lockStripe()
    defer { stripe.unlock() }
    return id == token.changed(to: .retired)
      && Lifetime(of: member, as: role)?.index == index
  }

  /// Called in the child of a fork. Completes, without waiting, the end of each lifetime that a
  /// thread of the parent had begun to end.
  static func completeAllInChild() {
    pool.forEach { slot, index in
      let lifetime = Lifetime(slot: slot, index: index)
      if lifetime.id.kind == .vacant { return }  // its page may have been returned to the system
      lifetime.storage.pointee.waiterCount.store(0, ordering: .relaxed)
      guard lifetime.id.kind == .retired, lifetime.nextLive() != nil else { return }
      var removal = Removal()
      _ = lifetime.removeMembers(&removal, .untilExit)
      lifetime.removeUnfinished()
    }
  }
}
