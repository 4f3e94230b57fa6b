import MulticastShims
import Synchronization

/// The beginning of every slot.
struct SlotHeader: ~Copyable {
  /// In a registration: the index of its multicast. In a multicast: the index of its policies, if
  /// it has any. Otherwise unused.
  ///
  /// `id` is not the first field: the thread sanitizer reports a change of any field of a slot as a
  /// change of its first bytes, and other threads read `id` without a lock.
  let owner: Atomic<UInt32>
  /// In a vacant slot: index + 1 of the next vacant slot, or 0, guarded by the pool's lock. In a
  /// multicast: the listener flag.
  let link: Atomic<UInt32>
  /// The handle of the slot's object. In a vacant slot: a handle of kind `vacant` with the
  /// generation of the last object.
  let id: Atomic<Handle>
}

/// The slots of one kind of handle: finds, allocates and recycles them.
struct SlotPool {
  let directory: SlabDirectory
  private let state: UnsafeMutablePointer<shims_slot_pool>
  private let smallestSlabShift: UInt32
  private let slabsOfASize: UInt32

  /// - Parameters:
  ///   - smallestSlabShift: The logarithm of the size of its first slab.
  ///   - slabsOfASize: The number of slabs after which the size doubles, so that a few slots take
  ///     little memory.
  init(
    _ state: UnsafeMutablePointer<shims_slot_pool>, of directory: SlabDirectory,
    smallestSlabShift: UInt32 = 6, slabsOfASize: UInt32 = 1
  ) {
    self.directory = directory
    self.state = state
    self.smallestSlabShift = smallestSlabShift
    self.slabsOfASize = slabsOfASize
  }

  /// The pools of the stripes share a directory.
  private var sharesDirectory: Bool { slabsOfASize > 1 }

  /// The slot that a handle of this kind leads to, which may have been reused. Nil if the handle is
  /// of another kind or leads to no slot.
  @inline(__always)
  func slot(of handle: Handle, _ kind: Handle.Kind) -> UnsafeMutableRawPointer? {
    handle.kind == kind ? directory.slot(handle.index) : nil
  }

  // MARK: - Under the pool's lock

  /// Takes a vacant slot.
  ///
  /// - Returns: nil if the pool has to grow first.
  @inline(__always)
  func takeVacant() -> (index: UInt32, slot: UnsafeMutablePointer<SlotHeader>)? {
    let first = state.pointee.first_vacant
    if first != 0 {
      let slot = header(first &- 1)
      state.pointee.first_vacant = slot.pointee.link.load(ordering: .relaxed)
      return (first &- 1, slot)
    }
    let index = state.pointee.next_unused
    if index == state.pointee.end_unused { return nil }
    state.pointee.next_unused &+= 1
    return (index, header(index))
  }

  /// Adds a free slab, or a new one. The slab lock is held, too.
  func grow() throws(Status) {
    var slab = directory.takeFree()
    if slab == nil {
      let number = state.pointee.slab_shift
      slab = try directory.addSlab(
        shift: min(smallestSlabShift &+ number / slabsOfASize, SlabDirectory.largestShift),
        limit: sharesDirectory ? directory.collectsAt : SlabDirectory.capacity)
      state.pointee.slab_shift &+= 1
    }
    setUnused(directory.indices(ofSlab: slab.unsafelyUnwrapped))
  }

  /// Takes back a slot that is no longer in use. A slot without a generation left is never used
  /// again.
  func putBack(_ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>) {
    if slot.pointee.id.load(ordering: .relaxed).isExhausted { return }
    slot.pointee.link.store(state.pointee.first_vacant, ordering: .relaxed)
    state.pointee.first_vacant = index &+ 1
    checkInvariants()
  }

  /// Like `putBack`, for a pool that the slab lock guards.
  func reclaim(_ index: UInt32) {
    Lock.slabs.lock()
    putBack(index, header(index))  //~ slot_put_back_twice
    Lock.slabs.unlock()
  }

  /// Visits every slot that was ever taken, and perhaps others, which are vacant. For the child of
  /// a fork, and for pools with a directory of their own.
  func forEach(_ body: (_ slot: UnsafeMutableRawPointer, _ index: UInt32) -> Void) {
    let (next, end) = (state.pointee.next_unused, state.pointee.end_unused)
    for index in directory.indices where index < next || index >= end {
      body(directory.slot(index).unsafelyUnwrapped, index)
    }
  }

  @inline(__always) func header(_ index: UInt32) -> UnsafeMutablePointer<SlotHeader> {
    directory.slot(index).unsafelyUnwrapped.assumingMemoryBound(to: SlotHeader.self)
  }

  private func setUnused(_ indices: Range<UInt32>) {
    state.pointee.next_unused = indices.lowerBound
    state.pointee.end_unused = indices.upperBound
  }
}

// MARK: - The pools

/// The numbers of the directories and pools in the static storage. The pools of registrations
/// belong to the stripes.
enum PoolIndex: Int { case multicasts, registrations, lifetimes, queues, broadcasters, policies }

extension SlotPool {
  /// The slot of a multicast is one cache line.
  static var multicasts: SlotPool { SlotPool(.multicasts, stride: 64) }

  init(_ index: PoolIndex, stride: Int) {
    self.init(
      shims_get_slot_pool(index.rawValue).unsafelyUnwrapped,
      of: SlabDirectory(index, stride: stride))
  }
}

extension SlabDirectory {
  init(_ index: PoolIndex, stride: Int) {
    self.init(shims_get_directory(index.rawValue).unsafelyUnwrapped, stride: stride)
  }
}

/// Invariant: slots on the vacant list are not in use. The pool's lock is held.
extension SlotPool: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      check.that(
        state.pointee.next_unused <= state.pointee.end_unused,
        "the unused slots are within the newest slab", state.pointee.next_unused,
        state.pointee.end_unused)
      check.walk(state.pointee.first_vacant) { index in
        let id = header(index).pointee.id.load(ordering: .relaxed)
        check.that(id.kind == .vacant, "a vacant slot has no occupant", index, id.kind.rawValue)
        return header(index).pointee.link.load(ordering: .relaxed)
      }
    }
  #endif
}

extension SlotPool {
  /// Takes all slabs without a used slot out of this pool and frees them. The pool's lock and the
  /// slab lock are held.
  ///
  /// - Parameter isIdle: Whether a vacant slot has no content that must be kept.
  /// - Complexity: O(vacant slots).
  func collect(_ isIdle: (_ slot: UnsafeMutableRawPointer) -> Bool) {
    let nextUnused = state.pointee.next_unused
    let unused = state.pointee.end_unused &- nextUnused
    if unused > 0 { directory.count(unused, inSlabOf: nextUnused) }
    var next = state.pointee.first_vacant
    while next != 0 {
      let slot = header(next &- 1)
      if isIdle(slot) { directory.count(1, inSlabOf: next &- 1) }
      next = slot.pointee.link.load(ordering: .relaxed)
    }

    next = state.pointee.first_vacant
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
    if unused > 0 && directory.freeIfVacant(slabOf: nextUnused, .none) { setUnused(0..<0) }
    checkInvariants()
  }

  /// - Parameters: The links of two vacant slots; 0 stands for the beginning or the end.
  private func setNext(after last: UInt32, _ link: UInt32) {
    if last == 0 { return state.pointee.first_vacant = link }
    header(last &- 1).pointee.link.store(link, ordering: .relaxed)
  }
}

/// Vacant slots that a thread keeps for its next creations, which then need no lock. They are
/// linked like those in the pool.
///
/// Only the thread that keeps the slots uses them. Since `take` needs no lock, a fork may happen in
/// the middle of it. The child then finds a slot here that is in use, or one slot is lost.
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

  /// Adds a slot that is no longer in use. If the thread already keeps many slots, half of them go
  /// back to the pool.
  ///
  /// The caller holds a lock, so no fork can happen here, and every link that a child finds is
  /// valid.
  mutating func put(_ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>, of pool: SlotPool) {
    if slot.pointee.id.load(ordering: .relaxed).isExhausted { return }
    if count == Self.limit { giveBack(to: pool, keeping: Self.limit / 2) }
    slot.pointee.link.store(first, ordering: .relaxed)
    first = index &+ 1
    count &+= 1  //~ cached_slot_not_counted
  }

  /// Gives all slots, or all but `kept`, back to the pool. Also called on behalf of a thread that
  /// no longer exists.
  mutating func giveBack(to pool: SlotPool, keeping kept: UInt32 = 0) {
    if first == 0 { return }
    Lock.slabs.lock()
    while first != 0 && (kept == 0 || count > kept) {
      let index = first &- 1
      let slot = pool.header(index)
      first = slot.pointee.link.load(ordering: .relaxed)
      count &-= 1
      // In the child of a fork the slot may be in use: see above.
      if slot.pointee.id.load(ordering: .relaxed).kind == .vacant { pool.putBack(index, slot) }
    }
    if first == 0 { count = 0 }
    Lock.slabs.unlock()
  }
}
