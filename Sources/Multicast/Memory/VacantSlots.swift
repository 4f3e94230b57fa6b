import Synchronization

/// Vacant slots that a thread keeps for its next creations, without a lock. They are linked as in
/// their pool.
///
/// Only the thread that has them uses them. A fork may happen in the middle of `take`, since that
/// takes no lock. The child then finds a slot here that has an occupant, or misses one slot.
struct VacantSlots {
  private static let limit: UInt32 = 32

  private var first: UInt32  // index + 1
  private var count: UInt32

  @inline(__always)
  mutating func take(
    from pool: SlotPool
  ) -> (index: UInt32, slot: UnsafeMutablePointer<SlotHeader>)? {
    if first == 0 { return nil }
    let index = first &- 1
    let slot = pool.header(index)
    first = slot.pointee.link.load(ordering: .relaxed)
    count &-= 1
    return (index, slot)
  }

  /// Takes a slot that has no occupant any more. If there are many already, half of them go to the
  /// pool.
  ///
  /// The caller holds a lock, so that no fork happens here: a link that the child finds is right.
  mutating func put(_ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>, of pool: SlotPool) {
    if slot.pointee.id.load(ordering: .relaxed).isExhausted { return }
    if count == Self.limit { giveBack(to: pool, keeping: Self.limit / 2) }
    slot.pointee.link.store(first, ordering: .relaxed)
    first = index &+ 1
    count &+= 1  //~ cached_slot_not_counted
  }

  /// Gives all, or all but some, to the pool. Also for a thread that does not exist any more.
  mutating func giveBack(to pool: SlotPool, keeping kept: UInt32 = 0) {
    if first == 0 { return }
    Lock.slabs.lock()
    while first != 0 && (kept == 0 || count > kept) {
      let index = first &- 1
      let slot = pool.header(index)
      first = slot.pointee.link.load(ordering: .relaxed)
      count &-= 1
      // In the child of a fork it may have an occupant: see above.
      if slot.pointee.id.load(ordering: .relaxed).kind == .vacant { pool.putBack(index, slot) }
    }
    if first == 0 { count = 0 }
    Lock.slabs.unlock()
  }
}
