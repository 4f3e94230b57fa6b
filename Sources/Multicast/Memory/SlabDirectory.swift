import MulticastShims
import Synchronization

/// Finds the slot of an index. Slots are in slabs, which are added and never moved or freed.
///
/// An index is a slab number (16 bits) and a place in the slab (10 bits). A slab has 16 to 1024
/// slots, a power of two. The directory has a word for each slab: its address, with the logarithm
/// of its size in the low bits. A place beyond the end of a small slab wraps around: it leads to a
/// wrong slot, whose handle does not match.
struct SlabDirectory {
  private static let placeBits: UInt32 = 10
  private static let capacity = UInt32(SHIMS_DIRECTORY_LENGTH)
  private static let alignment = 64
  private static let shiftMask = 63
  static let largestShift = placeBits

  private let state: UnsafeMutablePointer<shims_directory>
  private let stride: Int

  @inline(__always) init(_ state: UnsafeMutablePointer<shims_directory>, stride: Int) {
    self.state = state
    self.stride = stride
  }

  @inline(__always) private var words: UnsafeMutablePointer<Atomic<UInt>> {
    shims_get_words(state).unsafelyUnwrapped.assumingMemoryBound(to: Atomic<UInt>.self)
  }

  /// - Returns: the slot, or nil if there is no slab for it.
  @inline(__always) func slot(_ index: UInt32) -> UnsafeMutableRawPointer? {
    // Acquire: pairs with the release in `addSlab`, so that the zeros of the slab are seen.
    let word = words[Int(index >> Self.placeBits)].load(ordering: .acquiring)
    guard word != 0 else { return nil }
    let mask = (1 << (word & UInt(Self.shiftMask))) &- 1
    let place = Int(index) & mask
    let base = UnsafeMutableRawPointer(bitPattern: word & ~UInt(Self.shiftMask))
    return base.unsafelyUnwrapped + place &* stride
  }

  /// Visits every slot, used or not. In the child of a fork: no slab is added meanwhile.
  func forEachInChild(_ body: (_ index: UInt32) -> Void) {
    var slab: UInt32 = 0
    while slab < slabCount {
      let shift = words[Int(slab)].load(ordering: .relaxed) & UInt(Self.shiftMask)
      let first = Self.firstIndex(ofSlab: slab)
      var index = first
      while index < first &+ (1 << UInt32(truncatingIfNeeded: shift)) {
        body(index)
        index &+= 1
      }
      slab &+= 1
    }
  }

  // MARK: - Under the slab lock

  var slabCount: UInt32 { state.pointee.slab_count }

  static func firstIndex(ofSlab slab: UInt32) -> UInt32 { slab << placeBits }

  nonisolated(unsafe) private static var newest: UnsafeMutableRawPointer? = nil

  /// Allocates a slab of `1 << shift` zeroed slots and makes it findable.
  ///
  /// - Returns: the index of its first slot.
  func addSlab(shift: UInt32) throws(Status) -> UInt32 {
    let slab = slabCount
    guard slab < Self.capacity else { throw .limit }
    let size = Self.alignment &+ stride << Int(shift)
    guard let block = Allocator.allocateZeroed(size: size, alignment: Self.alignment) else {
      throw .outOfMemory
    }
    // Each slab begins with the address of the one before: a leak checker does not follow the words
    // of the directory, which have something in their low bits.
    block.storeBytes(of: Self.newest, as: UnsafeMutableRawPointer?.self)
    Self.newest = block
    let word = UInt(bitPattern: block + Self.alignment) | UInt(shift)
    words[Int(slab)].store(word, ordering: .releasing)  // pairs with the acquire in `slot`
    state.pointee.slab_count &+= 1
    return Self.firstIndex(ofSlab: slab)
  }
}
