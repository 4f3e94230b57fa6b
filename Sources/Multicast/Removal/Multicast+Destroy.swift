import Synchronization

extension Multicast {
  /// Removes all delegates of a multicast, and ends the handle.
  ///
  /// If another thread has destroyed it, or is just doing so, this fails; after waiting as well.
  @inline(__always)
  func destroy(_ timeout: Timeout = .untilExit) -> Removal.Result {
    let isDestroyed = destroyAtOnce()
    if isDestroyed && !Queue.isInUse { return Removal.Result() }
    return destroyRest(timeout, isDestroyed)
  }

  /// The same, not inlined.
  @_optimize(speed)
  func destroyOutlined(_ timeout: Timeout) -> Removal.Result { destroy(timeout) }

  @inline(never)
  private func destroyRest(_ timeout: Timeout, _ isDestroyed: Bool) -> Removal.Result {
    if !isDestroyed { return destroySlowly(timeout) }
    // A queue may still run calls of delegates that were removed before.
    var removal = Removal(from: self)
    return removal.complete(timeout, waitingFor: .all)
  }

  /// All phases one after the other.
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

  /// Waits until no call of its delegates runs. It has to be destroyed before.
  func waitForEnd(_ timeout: Timeout) -> Status {
    let end = handle.end(foundAs: fields.header.id.load(ordering: .acquiring))  // order: occupant
    if end != .ok { return end }
    var removal = Removal(from: self)
    removal.withStripeLock { (_) throws(Status) in throw .invalidHandle }
    return removal.complete(timeout, waitingFor: .all).waiting
  }

  /// All phases of the removals at once: the fast path for plain registrations, if no
  /// invocation runs, and there are no policies.
  ///
  /// - Returns: false if there is more to do. Nothing has changed then.
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

  /// Frees a list that no invocation is reading, if its registrations are plain.
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

  /// The handle ends before the list is replaced. An invocation that finds the list of a later
  /// occupant then finds that the handle is not its own.
  private func endHandle() {
    fields.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)  //~ handle_not_ended
  }

  /// The stripe's lock is held.
  @inline(__always)
  private func giveBackSlot(_ thread: ThreadRecord?) {
    guard let thread else { return Self.pool.reclaim(handle.index) }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    thread.storage.pointee.vacant.put(handle.index, slot, of: Self.pool)
  }
}

/// The multicast of a name that a caller destroys by its handle.
///
/// The name may have its next multicast before the notification of this multicast's end. If both
/// had policies of their own, two threads would notify a transport of one name, and `unsubscribe`
/// might come last. So an observed multicast leaves its slot, with its policies, to the next one of
/// the name: one `Notifier` under the lock of one stripe for all of them. The notification of the
/// end looks under that lock for a list with delegates, and finds the delegates of the next
/// multicast.
///
/// No pool has the slot meanwhile, so nothing else gets it. For invocations that still have the old
/// handle, the next occupant is one like any other. With the last generation the slot is not kept,
/// and the next multicast has policies of its own.
extension Multicast {
  /// Whether the slot waits for the next multicast. The stripe's lock is held.
  private var isKept: Bool {
    isObserved && fields.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
  }

  /// Gives the slot its next occupant, if it is kept. The stripe's lock is held.
  func renew() -> Handle? {
    if !isKept { return nil }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    return SlotPool.occupy(handle.index, slot, .multicast) {
      Self.initialize($0, $1, Self.observed)
    }
  }

  /// Gives the slot back, if it is kept: the name does not exist any more. No lock is held.
  func giveBackKept() {
    // Without the lock: this thread has held it since the multicast ended.
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
