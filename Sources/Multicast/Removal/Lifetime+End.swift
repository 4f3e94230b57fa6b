import MulticastShims
import Synchronization

extension Lifetime {
  /// Ends a lifetime, and removes its members from all multicasts that they are in.
  ///
  /// If another thread has just ended the lifetime, this function also waits, and then fails.
  ///
  /// - Parameters:
  ///   - change: A change that is made together with the end, under the lifetime's lock, so that a
  ///     fork sees either both or neither. If it throws, the lifetime does not end. The removal
  ///     releases the payloads of cancelled calls.
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

  /// - Returns: whether this thread ends the lifetime; false if another thread is ending it.
  private func begin(
    _ handle: Handle, _ payloads: inout ReleasedPayloads,
    _ change: (inout ReleasedPayloads) throws(Status) -> Void
  ) throws(Status) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    if id == handle {
      try change(&payloads)
      id = handle.changed(to: .retired)
      // Adds this thread to the count. Release: pairs with the acquire in `removeUnfinished`, which
      // then finds that the lifetime has ended, and wakes the waiting threads.
      storage.pointee.unfinished.wrappingAdd(1, ordering: .releasing)  // order: end_of_lifetime
      return true
    }
    guard willWait(forEndOf: handle) else { throw .invalidHandle }
    return false
  }

  /// Counts this thread as waiting, and returns true, if another thread is ending the lifetime. The
  /// lock is held.
  private func willWait(forEndOf handle: Handle) -> Bool {
    if id != handle.changed(to: .retired) { return false }
    storage.pointee.waiterCount.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Waits until no call and no release function of the members of an ended lifetime is running.
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

  /// Called while another thread is ending the lifetime. Removes members as well, and then waits.
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
    // Under this lock, the registration is live, or another thread has removed it in the meantime.
    // The slot may even have been reused, but not for a member of this lifetime, which accepts no
    // more members.
    guard id.kind == .registration || id.kind == .special,
      let other = Lifetime(of: member, as: role),
      other.index == index, other.id.kind == .retired
    else { return stripe.unlock() }
    removal.unlink(member, unlocking: stripe)
  }

  /// Waits for members that other threads have removed: for their calls, and for their release
  /// functions, whose code may be about to be unloaded. Does not wait for release functions if this
  /// could close a cycle.
  ///
  /// - Parameters:
  ///   - own: The result for the members that this thread has removed.
  ///   - retired: The handle in the slot as long as another thread is ending the lifetime. None if
  ///     this thread ends the lifetime, and waits until the last member is released.
  private func waitForOthers(
    _ removal: inout Removal, _ own: Status, _ timeout: Timeout, _ retired: Handle
  ) -> Status {
    func isOver() -> Bool { retired == .none ? isFinished : id != retired }
    let others = removal.waitForPriorRemovals(.members(self), timeout)
    if others == .system { return .system }
    let isInside = ThreadRecord.current?.isInside ?? false
    if others == .ok && !isInside && shims_get_release_depth() == 0 {
      // In the child of a fork, the parent's threads do not exist, so their work on the lifetime
      // never ends.
      let process = storage.pointee.process.load(ordering: .relaxed)
      if process != Fork.generation { return own }
      let status = Waits.sleep(for: .releases, with: key, timeout) { isOver() || Fence.isBroken }
      if isOver() { return .ok }
      return status == .ok ? .system : status
    }
    if isOver() { return own }
    return own == .timeout || others == .timeout ? .timeout : .pending
  }

  /// Whether a token refers to a registration that delivers, or delivered, to a queue.
  static func isMember(_ token: Token, ofQueue queue: Handle) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let (stripe, id) = member.lockStripe()
    defer { stripe.unlock() }
    return id.changed(to: .registration) == token
      && Lifetime(of: member, as: .recipient)?.storage.pointee.queue == queue
  }

  /// Whether a token refers to a member that was removed and may be in a call.
  func isRetiredMember(_ token: Token) -> Bool {
    guard let member = Registration(slotOf: token) else { return false }
    let (stripe, id) = member.lockStripe()
    defer { stripe.unlock() }
    return id == token.changed(to: .retired)
      && Lifetime(of: member, as: role)?.index == index
  }

  /// Completes the ends of lifetimes that threads of the parent had begun, except for the waiting.
  /// Called in the child of a fork.
  static func completeAllInChild() {
    pool.forEach { slot, index in
      let lifetime = Lifetime(slot: slot, index: index)
      if lifetime.id.kind == .vacant { return }  // its page may have gone back to the system
      lifetime.storage.pointee.waiterCount.store(0, ordering: .relaxed)
      guard lifetime.id.kind == .retired, lifetime.nextLive() != nil else { return }
      var removal = Removal()
      _ = lifetime.removeMembers(&removal, .untilExit)
      lifetime.removeUnfinished()
    }
  }
}
