import Synchronization

/// The current list and the retired ones. The stripe's lock is held, except for `reclaimLists`.
extension Multicast {
  var list: InvocationList? { fields.list.load(ordering: .relaxed).map { InvocationList($0) } }

  /// Release: pairs with the acquire of the invocation that reads the list.
  func setList(_ list: InvocationList?) {
    fields.list.store(list?.address, ordering: .releasing)  // order: contents
  }

  /// Replaces the current list, and frees or retires it.
  @_optimize(speed)
  func replaceList(by list: InvocationList?, _ removal: inout Removal) {
    guard let old = self.list else { return setList(list) }
    if let list {
      old.passIndex(to: list)
      //~ listener_warning_not_passed_on
      list.header.setWarning(old.header.warningCount, of: old.header.warningWatch)
    }
    if isQuiescent(removal.thread) {
      setList(list)
      return old.deallocate()
    }
    list?.link(to: old)
    setList(list)  //~ retired_list_still_current

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
  func makeRoomAtOnce() throws(Status) -> Bool {
    guard let list else { return try makeFirst() }
    if list.hasRoomAtOnce { return true }  //~ room_not_checked
    return try grow(list)
  }

  @_optimize(speed)
  @inline(never) private func makeFirst() throws(Status) -> Bool {
    setList(try InvocationList.allocate(for: 1, owner: handle))
    return true
  }

  @_optimize(speed)
  private func grow(_ old: InvocationList) throws(Status) -> Bool {
    if Watch.areListenerWarningsSet { return false }
    if old.dead > 0 || !old.canAppend(priority: 0) || !isQuiescent(.current) { return false }
    let larger = try InvocationList.allocate(for: old.count &+ 1, owner: handle)
    _ = old.copyLive(to: larger)
    setList(larger)
    old.passIndex(to: larger)
    old.deallocate()
    return true
  }

  /// The lists that were replaced, those of earlier occupants of the slot included.
  var retired: InvocationList.Chain { InvocationList.Chain(rest: fields.firstRetired) }

  /// Changes the state of a delegate in every list that an invocation may be reading.
  ///
  /// - Parameter list: The current list.
  /// - Complexity: O(1) for each list.
  @_optimize(speed)
  func markInLists(_ position: UInt32, of list: InvocationList, set: UInt32, clear: UInt32 = 0) {
    var (list, place) = (list, position)
    list.mark(place, set: set, clear: clear)
    for older in retired {
      // Older lists are those of earlier occupants of the slot.
      if older.header.owner != handle { return }
      place = list.entry(place).pointee.oldPlace.load(ordering: .relaxed)
      if place == InvocationList.Entry.none { return }  // it was added later
      list = older
      list.mark(place, set: set, clear: clear)  //~ retired_lists_not_marked
    }
  }

  /// Shrinks the list if too little of it is live. It is harmless if that fails.
  @_optimize(speed)
  func compact(_ removal: inout Removal) {
    guard let list else { return }
    if list.live == 0 { didRemoveLast() }
    let isQuiescent = self.isQuiescent(removal.thread)
    if isQuiescent { list.dropDeadTail() }
    guard list.needsCompaction else { return }
    if isQuiescent && !list.isSparse { return list.compactInPlace() }
    do throws(Status) {
      let smaller = try InvocationList.allocate(for: list.live &* 2, owner: handle)
      _ = list.copyLive(to: smaller)
      smaller.refreshLastPriority()
      replaceList(by: smaller, &removal)
    } catch {
      if isQuiescent { list.compactInPlace() }
    }
  }

  // MARK: - Reclaiming

  /// Frees the retired lists that no invocation can be reading. Takes the stripe's lock.
  ///
  /// Makes no fence: a list whose writer has not made its heavy fence yet is kept.
  @inline(never)
  func reclaimLists() {
    // A slot that was zero a moment ago had no list, and its handle does not tell the stripe.
    if handle.generation == 0 { return }
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
    // With one list a look at the frames is enough.
    while let first = next {
      if InvocationList(first).header.next == nil {
        reclaimLists(&next, nil, &kept, &last)
      } else {
        ListReaders.read(from: first, of: target) { reclaimLists(&next, $0, &kept, &last) }
      }
    }
    fields.firstRetired = kept?.address
    //~ newest_epoch_not_reset
    if kept == nil { fields.newestRetired.store(.none, ordering: .relaxed) }
  }

  /// - Parameters:
  ///   - next: The newest list that is left.
  ///   - readers: Those of the next lists; nil if there is one.
  ///   - kept: The newest list that is not freed.
  ///   - last: The oldest of them.
  private func reclaimLists(
    _ next: inout InvocationList.Address?, _ readers: ListReaders?, _ kept: inout InvocationList?,
    _ last: inout InvocationList?
  ) {
    var count = 0
    while let address = next, count < ListReaders.most {
      let list = InvocationList(address)
      next = list.header.next
      count &+= 1
      if isFree(list, readers) {
        forget(list, between: last ?? self.list, and: next)
        list.deallocate()
        continue
      }
      list.header.next = nil
      if let last { last.header.next = address } else { kept = list }
      last = list
    }
  }

  /// Before a list is freed: the next newer list has the places of its entries there.
  private func forget(
    _ list: InvocationList, between newer: InvocationList?, and older: InvocationList.Address?
  ) {
    let owner = list.header.owner
    guard let newer, newer.header.owner == owner, let older,
      InvocationList(older).header.owner == owner
    else { return }
    newer.link(past: list)
  }

  /// Whether the grace period of a retired list is over.
  private func isFree(_ retired: InvocationList, _ readers: ListReaders?) -> Bool {
    let (address, epoch) = (UInt(bitPattern: retired.address), retired.header.retiredAt)
    if retired.header.needsFence && !epoch.isFenced { return false }
    let mayBeRead =
      readers.map { $0.mayRead(retired) }
      ?? ThreadRegistry.all.contains { $0.mayRead(address, of: target, retiredAt: epoch) }
    return !mayBeRead  //~ list_freed_early list_never_freed
  }
}
