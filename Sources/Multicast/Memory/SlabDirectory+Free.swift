import MulticastShims
import Synchronization

/// Slabs that no pool has: all their slots are vacant. Any pool of the directory takes them. The
/// slab lock is held.
///
/// The pages of a free slab can be given to the system. They stay mapped and read as zeros, a
/// handle that no caller has. So a stale handle still finds a word that does not match. The
/// generations of the slots are lost with the pages. So the newest of them is kept beside the slab,
/// and all its slots go on from there: no handle is given twice.
extension SlabDirectory {
  /// The states of a free slab, in place of a count.
  private static let resident = UInt32.max
  private static let discarded = UInt32.max - 1

  /// If several pools share the directory: the number of slabs at which free slabs are collected
  /// before one is added.
  var collectsAt: UInt32 { max(state.pointee.collects_at, Self.manySlabs) }
  private static let manySlabs: UInt32 = 4096

  /// Called when the free slabs of all pools were collected. Not again until there are twice as
  /// many slabs as were in use: so this costs O(1) for each slot that is taken.
  func didCollect() {
    let used = slabCount &- state.pointee.free_count
    state.pointee.collects_at = min(Self.capacity, max(slabCount, used &* 2) &+ Self.manySlabs)
  }

  private func slab(_ number: UInt32) -> UnsafeMutablePointer<shims_slab> {
    shims_get_slab(state, number).unsafelyUnwrapped
  }

  func free(_ number: UInt32) {
    let slab = slab(number)
    slab.pointee.vacant = Self.resident
    slab.pointee.next = state.pointee.first_free
    state.pointee.first_free = number &+ 1
    state.pointee.free_count &+= 1
  }

  /// - Returns: the number of a slab that was free.
  func takeFree() -> UInt32? {
    if state.pointee.first_free == 0 { return nil }
    let number = state.pointee.first_free &- 1
    let slab = slab(number)
    state.pointee.first_free = slab.pointee.next
    state.pointee.free_count &-= 1
    slab.pointee.vacant = 0
    if slab.pointee.floor == 0 { return number }  // it is as new, and zero
    for index in indices(ofSlab: number) {
      let slot = slot(index).unsafelyUnwrapped.assumingMemoryBound(to: SlotHeader.self)
      // Relaxed: a handle that is not vacant is stored before any caller has it.
      let id = Handle(slab.pointee.floor | UInt64(index))  //~ floor_forgotten
      slot.pointee.id.store(id, ordering: .relaxed)
    }
    return number
  }

  // MARK: - Counting

  func count(_ vacant: UInt32, inSlabOf index: UInt32) {
    slab(Self.parts(of: index).slab).pointee.vacant &+= vacant
  }

  /// Called for each slot that was counted, or once for several: frees the slab if all were.
  ///
  /// - Returns: whether the slab is free.
  func freeIfVacant(slabOf index: UInt32, _ newest: Handle) -> Bool {
    let number = Self.parts(of: index).slab
    let slab = slab(number)
    if slab.pointee.vacant == slotCount(ofSlab: number) {
      free(number)
    } else if slab.pointee.vacant != Self.resident {
      slab.pointee.vacant = 0  // so the other slots do not find it free, and the next count begins
      return false
    }
    slab.pointee.floor = max(slab.pointee.floor, newest.generation)
    return true
  }

  // MARK: - The system

  /// Gives the pages of all free slabs to the system.
  ///
  /// - Returns: how many bytes.
  func discardFree() -> Int {
    var bytes = 0
    var next = state.pointee.first_free
    while next != 0 {
      let number = next &- 1
      let slab = slab(number)
      next = slab.pointee.next
      if slab.pointee.vacant == Self.discarded { continue }
      let first = slot(Self.firstIndex(ofSlab: number)).unsafelyUnwrapped
      let given = shims_discard(first, stride << Int(shift(ofSlab: number)))
      if given > 0 { slab.pointee.vacant = Self.discarded }
      bytes &+= given
    }
    return bytes
  }
}
