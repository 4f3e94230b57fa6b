import MulticastShims
import Synchronization

/// The beginning of every slot.
struct SlotHeader: ~Copyable {
  /// In a registration, this is the index of its multicast. In a multicast, it is the index of its
  /// policies, if it has any. In other objects, it is unused.
  ///
  /// `id` is not the first field, because the thread sanitizer reports a change to any field of a
  /// slot as a change to the slot's first bytes. Other threads read `id` without a lock, so the
  /// sanitizer would report false races.
  let owner: Atomic<UInt32>
  /// In a vacant slot, this is the index of the next vacant slot plus 1, or 0 if there is none; the
  /// pool's lock guards it. In a multicast, it is the listener flag.
  let link: Atomic<UInt32>
  /// The handle of the slot's object. A vacant slot contains a handle of kind `vacant` with the
  /// last object's generation.
  let id: Atomic<Handle>
}

/// Finds, allocates and recycles the slots of one kind of handle.
struct SlotPool {
  let directory: SlabDirectory
  private let state: UnsafeMutablePointer<shims_slot_pool>
  private let smallestSlabShift: UInt32
  private let slabsOfASize: UInt32

  /// - Parameters:
  ///   - smallestSlabShift: The logarithm of the number of slots in the first slab.
  ///   - slabsOfASize: The number of slabs after which the size of new slabs doubles. The first
  ///     slabs are small, so that a few slots use little memory.
  init(
    _ state: UnsafeMutablePointer<shims_slot_pool>, of directory: SlabDirectory,
    smallestSlabShift: UInt32 = 6, slabsOfASize: UInt32 = 1
  ) {
    self.directory = directory
    self.state = state
    self.smallestSlabShift = smallestSlabShift
    self.slabsOfASize = slabsOfASize
  }

  /// Whether the pool shares its directory with other pools, as the pools of the stripes do.
  private var sharesDirectory: Bool { slabsOfASize > 1 }

  /// The slot at the index of a handle, or nil if the handle is of a different kind or the slot
  /// does not exist. The slot may have been reused since.
  @inline(__always)
  func slot(of handle: Handle, _ kind: Handle.Kind) -> UnsafeMutableRawPointer? {
    handle.kind == kind ? directory.slot(handle.index) : nil
  }

  // MARK: - Under the pool's lock

  /// Takes a vacant slot. Returns nil if the pool has to grow first.
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

  /// Adds a free slab to the pool, or a new slab if none is free. The caller also holds the slab
  /// lock.
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

  /// Returns an unused slot to the pool, unless the slot has used up its generations.
  func putBack(_ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>) {
    if slot.pointee.id.load(ordering: .relaxed).isExhausted { return }
    slot.pointee.link.store(state.pointee.first_vacant, ordering: .relaxed)
    state.pointee.first_vacant = index &+ 1
    checkInvariants()
  }

  /// Like `putBack`, but for a pool guarded by the slab lock, which this function takes.
  func reclaim(_ index: UInt32) {
    Lock.slabs.lock()
    putBack(index, header(index))  //~ slot_put_back_twice
    Lock.slabs.unlock()
  }

  /// Visits every slot that has ever been taken, and perhaps some that have never been taken.
  /// Called only in the child of a fork, for pools that do not share their directory.
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

/// Checks that slots on the vacant list are not in use. The caller holds the pool's lock.
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
  /// Removes all slabs without a used slot from this pool, and adds them to the free slabs. The
  /// caller holds the pool's lock and the slab lock.
  ///
  /// - Parameter isIdle: Whether a vacant slot contains nothing that must be preserved.
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

  /// Links two vacant slots, given as indices plus 1. If `last` is 0, `link` becomes the start of
  /// the list of vacant slots. If `link` is 0, `last` becomes the end of the list.
  private func setNext(after last: UInt32, _ link: UInt32) {
    if last == 0 { return state.pointee.first_vacant = link }
    header(last &- 1).pointee.link.store(link, ordering: .relaxed)
  }
}

/// Vacant slots that a thread keeps so that it can create its next objects without a lock. The
/// slots are linked like the vacant slots of a pool.
///
/// Only the thread that keeps the slots uses them. `take` needs no lock, so another thread may fork
/// while `take` is running. In the child of such a fork, one of the slots may be in use or lost.
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

  /// Adds an unused slot. If there are already many slots, returns half of them to the pool.
  ///
  /// The caller holds a lock. Therefore no thread forks while this function is running, and every
  /// link that a child finds is valid.
  mutating func put(_ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>, of pool: SlotPool) {
    if slot.pointee.id.load(ordering: .relaxed).isExhausted { return }
    if count == Self.limit { giveBack(to: pool, keeping: Self.limit / 2) }
    slot.pointee.link.store(first, ordering: .relaxed)
    first = index &+ 1
    count &+= 1  //~ cached_slot_not_counted
  }

  /// Returns all slots, or all except `kept` of them, to the pool. Also called on behalf of a
  /// thread that no longer exists.
  mutating func giveBack(to pool: SlotPool, keeping kept: UInt32 = 0) {
    if first == 0 { return }
    Lock.slabs.lock()
    while first != 0 && (kept == 0 || count > kept) {
      let index = first &- 1
      let slot = pool.header(index)
      first = slot.pointee.link.load(ordering: .relaxed)
      count &-= 1
      // In the child of a fork, the slot may be in use (see `VacantSlots`).
      if slot.pointee.id.load(ordering: .relaxed).kind == .vacant { pool.putBack(index, slot) }
    }
    if first == 0 { count = 0 }
    Lock.slabs.unlock()
  }
}
