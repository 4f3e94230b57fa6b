import Synchronization

extension Multicast {
  /// Removes all delegates of a multicast, and ends the handle.
  ///
  /// If another thread has destroyed it or is destroying it, this function waits, too, and then
  /// fails.
  @inline(__always)
  func destroy(_ timeout: Timeout = .untilExit) -> Removal.Result {
    let isDestroyed = destroyAtOnce()
    if isDestroyed && !Queue.isInUse { return Removal.Result() }
    return destroyRest(timeout, isDestroyed)
  }

  /// Like `destroy`, but not inlined.
  @_optimize(speed)
  func destroyOutlined(_ timeout: Timeout) -> Removal.Result { destroy(timeout) }

  @inline(never)
  private func destroyRest(_ timeout: Timeout, _ isDestroyed: Bool) -> Removal.Result {
    if !isDestroyed { return destroySlowly(timeout) }
    // A queue may still be running calls of delegates that were removed before.
    var removal = Removal(from: self)
    return removal.complete(timeout, waitingFor: .all)
  }

  /// Goes through all phases of the removals, one after the other.
  func destroySlowly(_ timeout: Timeout) -> Removal.Result {
    var removal = Removal(from: self)
    var policies: Policies? = nil
    removal.withStripeLock { (removal) throws(Status) in
      _ = removal.unlinkAll(.all)
      let isKept = isObserved && !handle.isExhausted  //~ next_notified_by_others
      if hasPolicies || isObserved {
        policies = self.policies.willEnd(isKept: isKept) ? self.policies : nil
        isObserved = isKept
      }
      endHandle()
      replaceList(by: nil, &removal.lists)
      if !isKept { giveBackSlot(removal.lists.thread) }
    }
    policies?.end(handle)
    return removal.complete(timeout, waitingFor: .all)
  }

  /// Waits until no call of the delegates of a destroyed multicast is running.
  func waitForEnd(_ timeout: Timeout) -> Status {
    let end = handle.end(foundAs: fields.header.id.load(ordering: .acquiring))  // order: occupant
    if end != .ok { return end }
    var removal = Removal(from: self)
    removal.withStripeLock { (_) throws(Status) in throw .invalidHandle }
    return removal.complete(timeout, waitingFor: .all).waiting
  }

  /// Fast path: goes through all phases of the removals at once, if all registrations are plain, no
  /// invocation is running and there are no policies.
  ///
  /// - Returns: false if more is needed. Nothing has changed then.
  @inline(__always)
  private func destroyAtOnce() -> Bool {
    let (stripe, thread) = (self.stripe, ThreadRecord.current)
    stripe.lockInline()
    defer { stripe.unlockInline() }
    guard isCurrent, firstRetired == nil, isPlainAndQuiescent(thread) else { return false }
    if let list {
      guard freeAtOnce(list, stripe) else { return false }
    } else {
      endHandle()
    }
    giveBackSlot(thread)
    return true
  }

  /// Frees a list that no invocation is reading. False if its registrations are not all plain.
  @inline(never)
  @_optimize(speed)
  private func freeAtOnce(_ list: InvocationList, _ stripe: Stripe) -> Bool {
    var isPlain = true
    list.forEachLive { if $0.hasPendingCleanup { isPlain = false } }
    guard isPlain else { return false }
    list.forEachLive { $0.putBack(to: stripe) }
    endHandle()
    setList(nil)
    list.deallocate()
    return true
  }

  /// Ends the handle, before the list is replaced. An invocation that finds the list of a later
  /// multicast in the slot then also finds that the handle has changed.
  private func endHandle() {
    fields.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)  //~ handle_not_ended
  }

  /// Gives the slot back to the thread or to the pool. The stripe's lock is held.
  @inline(__always)
  private func giveBackSlot(_ thread: ThreadRecord?) {
    guard let thread else { return Self.pool.reclaim(handle.index) }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    thread.storage.pointee.vacant.put(handle.index, slot, of: Self.pool)
  }
}

/// The end of a multicast that belongs to a name, but that a caller destroys by its handle.
///
/// The name may get its next multicast before the end of this one is notified. If both multicasts
/// had policies of their own, two threads would notify a transport of the same name, and
/// `unsubscribe` might be called last. So an observed multicast leaves its slot and its policies to
/// the next multicast of the name, and all of these multicasts have one `Notifier` under the lock
/// of one stripe. The notification of the end looks for a list with delegates under that lock, and
/// finds the delegates of the next multicast.
///
/// In the meantime no pool contains the slot, so it is not reused for another name. To an
/// invocation that still has the old handle, the next multicast of the name looks like any other
/// multicast in a reused slot. A slot that has used its last generation is not kept. The next
/// multicast then has policies of its own.
extension Multicast {
  /// Whether the slot is kept for the next multicast of the name. The stripe's lock is held.
  private var isKept: Bool {
    isObserved && fields.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
  }

  /// Creates the next multicast in the slot, if the slot is kept. The stripe's lock is held.
  func renew() -> Handle? {
    if !isKept { return nil }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    return SlotPool.occupy(handle.index, slot, .multicast) {
      Self.initialize($0, $1, Self.observed)
    }
  }

  /// Gives the slot back, if it is kept: the name no longer exists. No lock is held.
  func giveBackKept() {
    // No lock is needed: this thread has held the stripe's lock since the multicast ended.
    if !isObserved { return }
    let stripe = self.stripe
    stripe.lock()
    guard isKept else { return stripe.unlock() }
    let policies = self.policies
    let isNotifying = policies.willEnd(isKept: false)
    isObserved = false
    giveBackSlot(.current)
    stripe.unlock()
    if isNotifying { policies.end(handle) }
  }
}
