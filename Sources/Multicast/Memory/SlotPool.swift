import MulticastShims
import Synchronization

/// What every slot of a pool begins with.
struct SlotHeader: ~Copyable {
  /// Nothing: the thread sanitizer takes a change of any field of a slot for one of its first byte.
  let first: UInt32
  /// Index + 1 of the next vacant slot; guarded by the slab lock.
  let nextVacant: Atomic<UInt32>
  /// The handle; of kind `vacant` and the same generation when nobody lives here.
  let id: Atomic<UInt64>
}

/// Gives out the slots of one kind of handle, and takes them back. The slab lock is held.
struct SlotPool {
  private static let smallestSlabShift = 6

  private(set) var firstVacant: UInt32 = 0  // index + 1
  private(set) var nextUnused: UInt32 = 0
  private(set) var endUnused: UInt32 = 0
  private var slabCount = 0

  init() {}

  /// - Returns: a slot that is nobody's, and the handle for who moves in.
  mutating func take(
    from directory: SlabDirectory, kind: UInt64
  ) throws(Status) -> (slot: UnsafeMutableRawPointer, handle: UInt64) {
    let index = try takeIndex(from: directory)
    let slot = directory.slot(index).unsafelyUnwrapped
    let vacant = Self.header(index, directory).pointee.id.load(ordering: .relaxed)
    checkInvariants(of: directory)
    return (slot, Handle.next(after: vacant, kind: kind, index: index))
  }

  private mutating func takeIndex(from directory: SlabDirectory) throws(Status) -> UInt32 {
    if firstVacant != 0 {
      let index = firstVacant &- 1
      firstVacant = Self.header(index, directory).pointee.nextVacant.load(ordering: .relaxed)
      return index
    }
    if nextUnused == endUnused { try grow(directory) }
    defer { nextUnused &+= 1 }
    return nextUnused
  }

  mutating func giveBack(_ index: UInt32, to directory: SlabDirectory) {
    let header = Self.header(index, directory)
    if Handle.isExhausted(header.pointee.id.load(ordering: .relaxed)) { return }
    header.pointee.nextVacant.store(firstVacant, ordering: .relaxed)
    firstVacant = index &+ 1
    checkInvariants(of: directory)
  }

  /// Every slot that was ever given out, whoever lives there.
  func forEach(in directory: SlabDirectory, _ body: (UnsafeMutableRawPointer, UInt32) -> Void) {
    var slab = 0
    while slab < slabCount {
      let first = UInt32(truncatingIfNeeded: slab) << SlabDirectory.placeBits
      let isNewest = slab == slabCount &- 1
      let end = isNewest ? nextUnused : first &+ (1 << UInt32(Self.shift(ofSlab: slab)))
      var index = first
      while index < end {
        body(directory.slot(index).unsafelyUnwrapped, index)
        index &+= 1
      }
      slab &+= 1
    }
  }

  private static func shift(ofSlab slab: Int) -> Int {
    min(smallestSlabShift &+ slab, Int(SlabDirectory.placeBits))
  }

  private mutating func grow(_ directory: SlabDirectory) throws(Status) {
    guard slabCount < SlabDirectory.capacity else { throw .limit }
    let shift = Self.shift(ofSlab: slabCount)
    guard directory.publish(slab: slabCount, shift: shift) else { throw .outOfMemory }
    nextUnused = UInt32(truncatingIfNeeded: slabCount) << SlabDirectory.placeBits
    endUnused = nextUnused &+ (1 << UInt32(shift))
    slabCount &+= 1
  }

  private static func header(
    _ index: UInt32, _ directory: SlabDirectory
  ) -> UnsafeMutablePointer<SlotHeader> {
    directory.slot(index).unsafelyUnwrapped.assumingMemoryBound(to: SlotHeader.self)
  }
}
