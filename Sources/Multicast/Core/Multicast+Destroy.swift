import Synchronization

extension Multicast {
  /// Removes all delegates of a multicast without policies, and ends the handle.
  ///
  /// If another thread has destroyed it, or is just doing so, this fails; after waiting as well.
  @inline(__always)
  func destroyPlain(_ timeout: Timeout = .unlimited) -> Removal.Outcome {
    if destroyAtOnce() {
      if !Queue.isInUse { return Removal.Outcome() }
      // A queue may still run calls of delegates that were removed before.
      var removal = Removal(from: self)
      return removal.finish(timeout, waitingFor: .all)
    }
    return destroySlowly(timeout)
  }

  /// All phases one after the other. Also for a multicast with policies.
  @inline(never)
  func destroySlowly(_ timeout: Timeout) -> Removal.Outcome {
    var removal = Removal(from: self)
    var policies: Policies? = nil
    removal.mark { (removal) throws(Status) in
      _ = removal.unlinkAll(.all)
      if isGoverned || isObserved {
        policies = self.policies.willEnd() ? self.policies : nil
        isObserved = false
      }
      endHandle()
      replaceList(by: nil, &removal)
      giveBackSlot(removal.thread)
    }
    policies?.end(handle)
    return removal.finish(timeout, waitingFor: .all)
  }

  /// All phases of the removals at once: the fast path for plain registrations, if no
  /// invocation runs.
  ///
  /// - Returns: false if there is more to do. Nothing has changed then.
  @_optimize(speed)
  private func destroyAtOnce() -> Bool {
    let (stripe, thread) = (self.stripe, ThreadRecord.current)
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent, fields.firstRetired == nil, isQuiescent(thread) else { return false }
    if let list {
      guard list.isWithoutRest else { return false }
      list.forEachLive { Registration(index: $0.pointee.token.index).putBack(to: stripe) }
      endHandle()
      setList(nil)
      list.deallocate()
    } else {
      endHandle()
    }
    giveBackSlot(thread)
    return true
  }

  /// The handle ends before the list is replaced. An invocation that finds the list of a later
  /// occupant then finds that the handle is not its own.
  private func endHandle() {
    fields.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)  //~ handle_not_ended
  }

  /// The stripe's lock is held.
  @_optimize(speed)
  private func giveBackSlot(_ thread: ThreadRecord?) {
    guard let thread else { return Self.pool.reclaim(handle.index) }
    let slot = UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
    thread.storage.pointee.vacant.put(handle.index, slot, of: Self.pool)
  }
}
