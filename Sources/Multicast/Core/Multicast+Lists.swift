import Synchronization

/// The current list and the retired ones. The stripe's lock is held, except for `reclaimLists`.
extension Multicast {
  var list: InvocationList? { fields.list.load(ordering: .relaxed).map { InvocationList($0) } }

  /// Release: pairs with the acquire of the invocation that reads the list.
  func setList(_ list: InvocationList?) {
    fields.list.store(list?.address, ordering: .releasing)
  }

  /// Replaces the current list, and frees or retires it.
  @_optimize(speed)
  func replaceList(by list: InvocationList?, _ removal: inout Removal) {
    guard let old = self.list else { return setList(list) }
    setList(list)  //~ retired_list_still_current
    if isQuiescent(removal.thread) { return old.deallocate() }

    // After the replacement: an invocation that reads this epoch reads the new list.
    let epoch = Epoch.advance()
    //~ wrong_owner_of_retired_list
    old.header.retire(at: epoch, needsFence: neededFence(removal.thread) == .heavy)
    old.header.next = fields.firstRetired
    fields.firstRetired = old.address
    // Relaxed: a fence is between this store and the first look at the frames. It pairs with the
    // fence before an invocation that ends reads this.
    fields.newestRetired.store(epoch, ordering: .relaxed)
    if old.header.needsFence { return removal.hasRetiredList = true }
    Fence.full()
    reclaimListsLocked()
  }

  /// Makes sure that there is room for one more entry: by a larger list if need be, if no entry is
  /// dead and no invocation can be reading the list that is replaced.
  ///
  /// - Returns: false if it takes more. Nothing has changed then.
  @inline(__always) func makeRoomAtOnce() throws(Status) -> Bool {
    if let list, list.room > 0 { return true }  //~ room_not_checked
    return try grow()
  }

  @_optimize(speed)
  @inline(never) private func grow() throws(Status) -> Bool {
    let old = list
    if let old, old.dead > 0 || !old.canAppend(1, priority: 0) || !isQuiescent(.current) {
      return false
    }
    let capacity = InvocationList.capacity(for: (old?.count ?? 0) &+ 1)
    guard let larger = InvocationList.allocate(capacity: capacity, owner: handle) else {
      throw .outOfMemory
    }
    _ = old?.copyLive(to: larger)
    setList(larger)
    old?.deallocate()
    return true
  }

  @inline(__always)
  func forEachRetired(_ body: (InvocationList) -> Void) {
    var next = fields.firstRetired
    while let address = next {
      let list = InvocationList(address)
      next = list.header.next
      if list.header.owner == handle { body(list) }
    }
  }

  /// Changes the state of a delegate in every list that an invocation may be reading.
  @_optimize(speed)
  func mark(_ position: UInt32, of list: InvocationList, set: UInt32, clear: UInt32 = 0) {
    let token = list.entry(position).pointee.token
    list.mark(position, set: set, clear: clear)
    forEachRetired { retired in
      let place = retired.position(of: token, at: position, in: list)
      if let place { retired.mark(place, set: set, clear: clear) }  //~ retired_lists_not_marked
    }
  }

  /// Shrinks the list if too little of it is live. It is harmless if that fails.
  @_optimize(speed)
  func compact(_ removal: inout Removal) {
    guard let list else { return }
    let isQuiescent = self.isQuiescent(removal.thread)
    if isQuiescent { list.dropDeadTail() }
    guard list.needsCompaction else { return }
    if isQuiescent && !list.isSparse { return list.compactInPlace() }
    let smaller = InvocationList.allocate(
      capacity: InvocationList.capacity(for: list.live &* 2), owner: handle)
    if let smaller {
      _ = list.copyLive(to: smaller)
      smaller.refreshLastPriority()
      replaceList(by: smaller, &removal)
    } else if isQuiescent {
      list.compactInPlace()
    }
  }

  // MARK: - Reclaiming

  /// Frees the retired lists that no invocation can be reading. Takes the stripe's lock.
  ///
  /// Makes no fence: a list whose writer has not made its heavy fence yet is kept.
  @inline(never)
  func reclaimLists() {
    let stripe = self.stripe
    stripe.lock()
    reclaimListsLocked()
    checkInvariants()
    stripe.unlock()
  }

  private func reclaimListsLocked() {
    var next = fields.firstRetired
    var kept: InvocationList? = nil
    var last = kept
    while let address = next {
      let list = InvocationList(address)
      next = list.header.next
      if isFree(list) {
        list.deallocate()
        continue
      }
      list.header.next = nil
      if let last { last.header.next = address } else { kept = list }
      last = list
    }
    fields.firstRetired = kept?.address
    //~ newest_epoch_not_reset
    if kept == nil { fields.newestRetired.store(.none, ordering: .relaxed) }
  }

  /// Whether the grace period of a retired list is over.
  private func isFree(_ retired: InvocationList) -> Bool {
    let (address, epoch) = (UInt(bitPattern: retired.address), retired.header.retiredAt)
    if retired.header.needsFence && !epoch.isFenced { return false }
    return !ThreadRegistry.all.contains {  //~ list_freed_early list_never_freed
      $0.mayRead(address, of: target, retiredAt: epoch)
    }
  }
}
