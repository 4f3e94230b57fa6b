import Synchronization

/// The changes that one thread makes to lists.
struct ListChanges {
  let thread: ThreadRecord?

  /// The most recently retired list whose readers' frames are visible only after a heavy fence.
  fileprivate(set) var retired: InvocationList? = nil

  init(by thread: ThreadRecord?) { self.thread = thread }
}

/// The current list and the retired lists of a multicast. The caller holds the stripe's lock,
/// except in `reclaim`, which takes the lock itself.
extension Multicast {
  var list: InvocationList? { fields.list.load(ordering: .relaxed).map { InvocationList($0) } }

  /// Release: pairs with an invocation's acquire load.
  func setList(_ list: InvocationList?) {
    fields.list.store(list?.address, ordering: .releasing)  // order: contents
  }

  /// Replaces the current list, and then frees or retires it.
  @_optimize(speed)
  func replaceList(by list: InvocationList?, _ changes: inout ListChanges) {
    guard let old = self.list else { return setList(list) }
    if let list { old.passOn(to: list) }
    setList(list)  //~ retired_list_still_current
    if isQuiescent(changes.thread) { return old.deallocate() }

    // This fence is between the replacement and the stamp, so the new list is visible before any
    // heavy fence with a higher number begins. If an invocation's frame is not visible after such a
    // heavy fence, the invocation reads the new list. This fence also pairs with the full fence of
    // a fenced invocation.
    Fence.full()
    RaceDetector.happensBefore(old.address)  // acquired by the thread that frees the list
    old.header.retire(needsFence: neededFence(changes.thread) == .heavy)
    old.header.next = firstRetired
    firstRetired = old.address
    if old.header.areReadersVisible {
      reclaimLocked { $0.address == old.address }
    } else {
      changes.retired = old
    }
  }

  private(set) var firstRetired: InvocationList.Address? {
    get { fields.firstRetired.load(ordering: .relaxed) }
    nonmutating set { fields.firstRetired.store(newValue, ordering: .relaxed) }
  }

  /// Makes sure that there is room for another entry. If necessary, replaces the list with a larger
  /// list, provided that no entry is dead and no invocation can be reading the old list. Returns
  /// whether there is room now. If there is not, nothing has changed.
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

  /// The retired lists, including those of previous multicasts in this slot.
  var retired: InvocationList.Chain { InvocationList.Chain(rest: firstRetired) }

  /// Compacts the list if necessary. If there is no memory for a smaller list, keeps the current
  /// list.
  @_optimize(speed)
  func compact(_ changes: inout ListChanges) {
    guard let list else { return }
    if list.live == 0 { didRemoveLast() }
    if isQuiescent(changes.thread) { return compactAtOnce(list) }
    if list.needsCompaction, let smaller = list.compacted() { replaceList(by: smaller, &changes) }
  }

  /// Compacts a list if necessary. Requires that no invocation is reading the list.
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
  /// This function executes no fence. If the writer that replaced a list has yet to execute its
  /// heavy fence, this function does not free that list. The writer calls this function after its
  /// fence, and each invocation that has named the list calls it when the invocation ends. The last
  /// of these calls frees the list.
  ///
  /// - Parameter only: The address of the only list to consider; nil for all lists.
  @inline(never)
  func reclaim(_ only: UInt? = nil) {
    // If the slot's page has been returned to the system, the slot has no lists. Its handle then
    // reads as zero, and does not identify the stripe that guards the slot.
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

  /// Whether an invocation of this slot's multicast names a list in its frame. Frames with other
  /// targets do not count. Such a frame may contain the same address, left over from a list that
  /// has been freed. If it counted, this list might never be freed, because the frame's invocation
  /// frees no lists of this slot.
  private func isRead(_ list: InvocationList) -> Bool {
    ThreadRegistry.isRead(UInt(bitPattern: list.address), by: target)
  }
}
