import Synchronization

extension Multicast {
  /// Removes all delegates of a multicast, and ends the handle.
  ///
  /// If another thread is destroying the multicast or has destroyed it, this function also waits
  /// for calls to its delegates, and then fails.
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
    // A queue may still be running calls to delegates that were removed earlier.
    var removal = Removal(from: self)
    return removal.complete(timeout, waitingFor: .all)
  }

  /// Destroys the multicast, and performs the phases of the removals one after another.
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

  /// Waits until no call to a destroyed multicast's delegates is running.
  func waitForEnd(_ timeout: Timeout) -> Status {
    let end = handle.end(foundAs: fields.header.id.load(ordering: .acquiring))  // order: occupant
    if end != .ok { return end }
    var removal = Removal(from: self)
    removal.withStripeLock { (_) throws(Status) in throw .invalidHandle }
    return removal.complete(timeout, waitingFor: .all).waiting
  }

  /// Fast path: performs all phases of the removals without releasing the lock. This requires that
  /// all registrations are plain, that no invocation is running, and that there are no policies.
  ///
  /// - Returns: false if the requirements are not met, in which case nothing has changed.
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

  /// Frees a list that no invocation is reading, if all of its registrations are plain.
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

  /// The caller replaces the list afterwards. So an invocation that finds a later multicast's list
  /// in the slot also finds that the handle has changed.
  private func endHandle() {
    fields.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)  //~ handle_not_ended
  }

  /// Returns the slot to the thread's vacant slots or to the pool. The caller holds the stripe's
  /// lock.
  @inline(__always)
  private func giveBackSlot(_ thread: ThreadRecord?) {
    guard let thread else { return Self.pool.reclaim(handle.index) }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    thread.storage.pointee.vacant.put(handle.index, slot, of: Self.pool)
  }
}

/// The end of a broadcaster's multicast that a caller destroys by its handle.
///
/// The name's next multicast may be created before the transport is notified of the end of this
/// multicast. If each multicast had its own policies, two threads could notify the transport about
/// the same name. One of them would call `subscribe` for the next multicast, and the other might
/// then call `unsubscribe` for the destroyed multicast, although the name has delegates. So an
/// observed multicast leaves its slot and policies to the name's next multicast, and all of these
/// multicasts share one `Notifier` under the lock of one stripe. The thread that reports the end
/// checks under that lock whether there are delegates, and finds those of the next multicast.
///
/// Until the next multicast exists, no pool contains the slot, so the slot is not reused for
/// another name. To an invocation that still uses the old handle, the name's next multicast looks
/// like any other multicast in a reused slot. If a slot has used up its generations, it is not
/// kept, and the next multicast has its own policies.
extension Multicast {
  /// Whether the slot is kept for the name's next multicast. The caller holds the stripe's lock.
  private var isKept: Bool {
    isObserved && fields.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
  }

  /// Creates the next multicast in the slot, if the slot is kept. The caller holds the stripe's
  /// lock.
  func renew() -> Handle? {
    if !isKept { return nil }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    return SlotPool.occupy(handle.index, slot, .multicast) {
      Self.initialize($0, $1, Self.observed)
    }
  }

  /// If the slot is kept, returns it to the vacant slots, because the name no longer exists. No
  /// lock is held.
  func giveBackKept() {
    // This read needs no lock, because this thread has already acquired the stripe's lock at least
    // once after the multicast had ended.
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
