import Synchronization

/// The changes that one thread makes to lists.
struct ListChanges {
  let thread: ThreadRecord?

  /// The list that was retired and needs a heavy fence; the last one, if there are several.
  private(set) var retired: InvocationList? = nil
  private(set) var hasRetiredSeveral = false

  init(by thread: ThreadRecord?) { self.thread = thread }

  /// Called when a list was retired whose readers are visible only after a heavy fence.
  fileprivate mutating func didRetire(_ list: InvocationList) {
    hasRetiredSeveral = retired != nil
    retired = list
  }
}

/// The current list and the retired ones. The stripe's lock is held, except for `reclaim`.
extension Multicast {
  var list: InvocationList? { fields.list.load(ordering: .relaxed).map { InvocationList($0) } }

  /// Release: pairs with the acquire of the invocation that reads the list.
  func setList(_ list: InvocationList?) {
    fields.list.store(list?.address, ordering: .releasing)  // order: contents
  }

  /// Replaces the current list, and frees or retires it.
  @_optimize(speed)
  func replaceList(by list: InvocationList?, _ changes: inout ListChanges) {
    guard let old = self.list else { return setList(list) }
    if let list { old.passOn(to: list) }
    setList(list)  //~ retired_list_still_current
    if isQuiescent(changes.thread) { return old.deallocate() }

    // Between the replacement and its stamp, so that a heavy fence with a higher number begins when
    // the new list is visible: an invocation that is not found in the frames after that fence reads
    // the new list. Also pairs with the full fence of an invocation that is fenced.
    Fence.full()
    RaceDetector.happensBefore(old.address)  // whoever frees it
    old.header.retire(needsFence: neededFence(changes.thread) == .heavy)
    old.header.next = firstRetired
    firstRetired = old.address
    if !old.header.areReadersVisible { return changes.didRetire(old) }
    reclaimLocked { $0.address == old.address }
  }

  private(set) var firstRetired: InvocationList.Address? {
    get { fields.firstRetired.load(ordering: .relaxed) }
    nonmutating set { fields.firstRetired.store(newValue, ordering: .relaxed) }
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
    if InvocationList.areWarningsSet { return false }
    if old.dead > 0 || !old.canAppend(priority: 0) || !isQuiescent(.current) { return false }
    let larger = try InvocationList.allocate(for: old.count &+ 1, owner: handle)
    _ = old.copyLive(to: larger)
    old.passOn(to: larger)
    setList(larger)
    old.deallocate()
    return true
  }

  /// The lists that were replaced, those of earlier occupants of the slot included.
  var retired: InvocationList.Chain { InvocationList.Chain(rest: firstRetired) }

  /// Shrinks the list if too little of it is live. It is harmless if that fails.
  @_optimize(speed)
  func compact(_ changes: inout ListChanges) {
    guard let list else { return }
    if list.live == 0 { didRemoveLast() }
    if isQuiescent(changes.thread) { return compactAtOnce(list) }
    if list.needsCompaction, let smaller = list.compacted() { replaceList(by: smaller, &changes) }
  }

  /// Shrinks the list, which no invocation reads, if too little of it is live.
  func compactAtOnce(_ list: InvocationList) {
    list.dropDeadTail()
    guard list.needsCompaction else { return }
    guard list.isSparse, let smaller = list.compacted() else { return list.compactInPlace() }
    list.passOn(to: smaller)
    setList(smaller)
    list.deallocate()
  }

  // MARK: - Reclaiming

  /// Frees retired lists that no invocation can be reading. Takes the stripe's lock.
  ///
  /// Makes no fence: a list whose writer has not made its heavy fence yet is kept. Each list is
  /// looked at by the writer that has replaced it, after its fence, and by each invocation that has
  /// named it, at its end. So the last one of them frees it.
  ///
  /// - Parameter only: The address of the list to look at; nil: all.
  @inline(never)
  func reclaim(_ only: UInt? = nil) {
    // A slot that was zero a moment ago had no list, and its handle does not tell the stripe.
    if handle.generation == 0 || only == 0 { return }
    let stripe = self.stripe
    stripe.lock()
    reclaimLocked { list in only.map { $0 == UInt(bitPattern: list.address) } ?? true }
    checkInvariants()
    stripe.unlock()
  }

  private func reclaimLocked(where matches: (InvocationList) -> Bool) {
    var last: InvocationList? = nil
    for list in retired {
      //~ list_freed_early list_never_freed
      if matches(list) && list.header.areReadersVisible && !isRead(list) {
        if let last { last.header.next = list.header.next } else { firstRetired = list.header.next }
        RaceDetector.happensAfter(list.address)
        list.deallocate()
      } else {
        last = list
      }
    }
  }

  /// Whether an invocation of this slot names a list. A frame for another slot may have its address
  /// from a list that was freed; that invocation would not look at this one when it ends.
  private func isRead(_ list: InvocationList) -> Bool {
    ThreadRegistry.isRead(UInt(bitPattern: list.address), by: target)
  }
}
