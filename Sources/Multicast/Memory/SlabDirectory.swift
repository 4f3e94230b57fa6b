import MulticastShims
import Synchronization

/// Finds the slot with a given index. Slots are stored in slabs. The memory of a slab is never
/// moved and never deallocated. A slab whose slots are all vacant can be moved to another pool.
///
/// An index consists of the number of a slab (16 bits) and a place in the slab (10 bits). A slab
/// has 16 to 1024 slots, always a power of two. For each slab, the directory contains a word with
/// the slab's address and, in the low bits, the logarithm of its size. A place beyond the end of a
/// small slab wraps around to another slot, whose handle does not match.
struct SlabDirectory {
  private static let placeBits: UInt32 = 10
  static let capacity = UInt32(SHIMS_DIRECTORY_LENGTH)
  private static let alignment = 64
  private static let shiftMask = 63
  static let largestShift = placeBits

  let state: UnsafeMutablePointer<shims_directory>
  let stride: Int

  init(_ state: UnsafeMutablePointer<shims_directory>, stride: Int) {
    self.state = state
    self.stride = stride
  }

  private var words: UnsafeMutablePointer<Atomic<UInt>> {
    shims_get_words(state).unsafelyUnwrapped.assumingMemoryBound(to: Atomic<UInt>.self)
  }

  /// - Returns: the slot, or nil if its slab does not exist.
  @inline(__always) func slot(_ index: UInt32) -> UnsafeMutableRawPointer? {
    // Acquire: pairs with the release in `addSlab`, so that this thread sees the slab zeroed.
    let word = words[Int(index >> Self.placeBits)].load(ordering: .acquiring)  // order: slab
    guard word != 0 else { return nil }
    let mask = (1 << (word & UInt(Self.shiftMask))) &- 1
    let place = Int(index) & mask
    let base = UnsafeMutableRawPointer(bitPattern: word & ~UInt(Self.shiftMask))
    return base.unsafelyUnwrapped + place &* stride
  }

  /// The indices of all slots, used or not. No lock is needed, because slabs are added in order and
  /// are never removed.
  var indices: Indices { Indices(directory: self) }

  struct Indices: Sequence, IteratorProtocol {
    fileprivate let directory: SlabDirectory
    var index: UInt32 = 0

    @inline(never) mutating func next() -> UInt32? {
      while index >> placeBits < capacity {
        // Acquire: pairs with the release in `addSlab`.
        // order: slab
        let word = directory.words[Int(index >> placeBits)].load(ordering: .acquiring)
        if word == 0 { return nil }
        let (found, place) = (index, index & (1 << placeBits &- 1))
        let isThere = place >> UInt32(truncatingIfNeeded: word & UInt(shiftMask)) == 0
        index = isThere ? index &+ 1 : index &- place &+ 1 << placeBits
        if isThere { return found }
      }
      return nil
    }
  }

  // MARK: - Under the slab lock

  var slabCount: UInt32 { state.pointee.slab_count }

  static func parts(of index: UInt32) -> (slab: UInt32, place: Int) {
    (index >> placeBits, Int(index & (1 << placeBits &- 1)))
  }

  static func firstIndex(ofSlab slab: UInt32) -> UInt32 { slab << placeBits }

  func indices(ofSlab slab: UInt32) -> Range<UInt32> {
    let first = Self.firstIndex(ofSlab: slab)
    return first..<first &+ slotCount(ofSlab: slab)
  }

  func shift(ofSlab slab: UInt32) -> UInt {
    words[Int(slab)].load(ordering: .relaxed) & UInt(Self.shiftMask)
  }

  func slotCount(ofSlab slab: UInt32) -> UInt32 { 1 << UInt32(shift(ofSlab: slab)) }

  nonisolated(unsafe) private static var newest: UnsafeMutableRawPointer? = nil

  /// Once there are this many slabs, slabs that would fill at least a page are allocated in
  /// batches. All slabs of a batch have the largest size, and a batch contains one slab for every
  /// sixteen existing slabs. The batch starts with one page for its header, so that all other pages
  /// can be returned to the system.
  private static let manySlabs: UInt32 = 32
  private static let largestBatch: UInt32 = 64
  private static let page = 4096

  /// Allocates a slab with at least `1 << shift` zeroed slots and publishes it in the directory. If
  /// a batch is allocated, its other slabs are added to the free slabs.
  func addSlab(shift: UInt32, limit: UInt32) throws(Status) -> UInt32 {
    let slab = slabCount
    guard slab < limit else { throw .limit }
    let isBatch = stride << Int(shift) >= Self.page && slab >= Self.manySlabs
    let shift = isBatch ? Self.largestShift : shift
    let slabSize = stride << Int(shift)
    let count = isBatch ? min(slab / 16, Self.largestBatch, Self.capacity &- slab) : 1
    let headerSize = isBatch ? Self.page : Self.alignment
    let size = headerSize &+ slabSize &* Int(count)
    let block = try Allocator.allocateZeroed(size: size, alignment: Self.alignment)
    // Store the address of the previous block at the start of each block, so that leak checkers
    // find all blocks. A leak checker cannot follow the words of the directory, because the low
    // bits of these words are not zero.
    block.storeBytes(of: Self.newest, as: UnsafeMutableRawPointer?.self)
    Self.newest = block
    var base = UInt(bitPattern: block) &+ UInt(Self.alignment)
    if isBatch { base = (base &+ UInt(Self.page &- 1)) & ~UInt(Self.page &- 1) }
    var number = count
    while number > 0 {
      number &-= 1
      let word = base &+ UInt(number) &* UInt(slabSize) | UInt(shift)
      // Release: pairs with the acquire in `slot`.
      words[Int(slab &+ number)].store(word, ordering: .releasing)  // order: slab
      if number > 0 { free(slab &+ number) }
    }
    state.pointee.slab_count &+= count
    return slab
  }
}

/// Free slabs. All slots of a free slab are vacant. The slab belongs to no pool, and any pool of
/// the directory may take it. The caller holds the slab lock.
///
/// The pages of a free slab can be returned to the system. The pages then stay mapped and read as
/// zeros. No caller has a handle of zero, so a stale handle still finds a word that does not match.
/// The generations of the slots are lost with the pages. The newest of these generations is
/// therefore stored outside the slab. All slots of the slab continue from that generation, so that
/// no handle is handed out twice.
extension SlabDirectory {
  /// The states of a free slab, stored in the field that otherwise counts its vacant slots.
  private static let resident = UInt32.max
  private static let discarded = UInt32.max - 1

  /// Once a directory shared by several pools has this many slabs, slabs without used slots are
  /// collected from all of these pools before another slab is added.
  var collectsAt: UInt32 { max(state.pointee.collects_at, Self.slabsBeforeCollecting) }
  private static let slabsBeforeCollecting: UInt32 = 4096

  /// Called after the slabs without used slots have been collected from all pools. The next
  /// collection is due when there are at least twice as many slabs as are in use now, so collecting
  /// costs O(1) per slot taken.
  func didCollect() {
    let used = slabCount &- state.pointee.free_count
    state.pointee.collects_at = min(
      Self.capacity, max(slabCount, used &* 2) &+ Self.slabsBeforeCollecting)
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

  /// - Returns: the number of a slab that was free, or nil if there is none.
  func takeFree() -> UInt32? {
    if state.pointee.first_free == 0 { return nil }
    let number = state.pointee.first_free &- 1
    let slab = slab(number)
    state.pointee.first_free = slab.pointee.next
    state.pointee.free_count &-= 1
    slab.pointee.vacant = 0
    if slab.pointee.floor == 0 { return number }  // the slab was never used and is zero
    for index in indices(ofSlab: number) {
      let slot = slot(index).unsafelyUnwrapped.assumingMemoryBound(to: SlotHeader.self)
      // Relaxed is enough: no caller has a vacant handle, and every later handle is stored in the
      // slot before a caller receives it.
      let id = Handle(slab.pointee.floor | UInt64(index))  //~ floor_forgotten
      slot.pointee.id.store(id, ordering: .relaxed)
    }
    return number
  }

  // MARK: - Counting

  func count(_ vacant: UInt32, inSlabOf index: UInt32) {
    slab(Self.parts(of: index).slab).pointee.vacant &+= vacant
  }

  /// Called after `count`, for each vacant slot or once for several vacant slots of the same slab.
  /// Frees the slab if all its slots have been counted. Returns whether the slab is free.
  func freeIfVacant(slabOf index: UInt32, _ newest: Handle) -> Bool {
    let number = Self.parts(of: index).slab
    let slab = slab(number)
    if slab.pointee.vacant == slotCount(ofSlab: number) {
      free(number)
    } else if slab.pointee.vacant != Self.resident {
      // Reset the count. The calls for the slab's other slots then find that the slab is not free,
      // and the next count starts at 0.
      slab.pointee.vacant = 0
      return false
    }
    slab.pointee.floor = max(slab.pointee.floor, newest.generation)
    return true
  }

  // MARK: - Returning memory to the system

  /// Returns the pages of all free slabs to the system. The result is their size in bytes.
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
