import Synchronization

extension SlotPool {
  /// Takes all slabs out of this pool that have no occupant, and frees them. The pool's lock and
  /// the slabs' lock are held.
  ///
  /// - Parameter isIdle: Whether nothing is left in a vacant slot that has to stay there.
  /// - Complexity: O(vacant slots).
  @inline(never)
  func collect(_ isIdle: (_ slot: UnsafeMutableRawPointer) -> Bool) {
    let unused = endUnused &- nextUnused
    if unused > 0 { directory.count(unused, inSlabOf: nextUnused) }
    var next = firstVacant
    while next != 0 {
      let slot = header(next &- 1)
      if isIdle(slot) { directory.count(1, inSlabOf: next &- 1) }
      next = slot.pointee.link.load(ordering: .relaxed)
    }

    next = firstVacant
    var last: UInt32 = 0
    while next != 0 {
      let (link, slot) = (next, header(next &- 1))
      next = slot.pointee.link.load(ordering: .relaxed)
      let id = slot.pointee.id.load(ordering: .relaxed)
      if directory.freeIfVacant(slabOf: link &- 1, id) { continue }  //~ freed_slab_kept
      setNext(after: last, link)
      last = link
    }
    setNext(after: last, 0)
    if unused > 0 && directory.freeIfVacant(slabOf: nextUnused, .none) { setUnused(0, 0) }
    checkInvariants()
  }

  /// - Parameters: Links of two vacant slots; 0 is the beginning, and the end.
  private func setNext(after last: UInt32, _ link: UInt32) {
    if last == 0 { return setFirstVacant(link) }
    header(last &- 1).pointee.link.store(link, ordering: .relaxed)
  }
}
