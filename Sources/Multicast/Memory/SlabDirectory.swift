import MulticastShims
import Synchronization

/// Finds the slot of an index, in slabs that are added and never move or go.
///
/// An index is slab number (16 bits) and place in the slab (10 bits). Slabs hold 16 to 1024 slots,
/// a power of two; the directory's word for one is its address, with the logarithm of its size in
/// the low bits. A place beyond a small slab wraps around in it: it leads to a wrong slot, whose
/// handle does not match.
struct SlabDirectory {
  static let placeBits: UInt32 = 10
  static let capacity = Int(SHIMS_DIRECTORY_LENGTH)
  static let alignment = 64
  private static let shiftMask = 63

  let words: UnsafeMutablePointer<Atomic<UInt>>
  let stride: Int

  @inline(__always) init(_ words: UnsafeMutableRawPointer, stride: Int) {
    self.words = words.assumingMemoryBound(to: Atomic<UInt>.self)
    self.stride = stride
  }

  /// - Returns: the slot, or nil where no slab is.
  @inline(__always) func slot(_ index: UInt32) -> UnsafeMutableRawPointer? {
    // Acquire: pairs with the release in `publish`, so the slab's zeros are seen.
    let word = words[Int(index >> Self.placeBits)].load(ordering: .acquiring)
    guard word != 0 else { return nil }
    let mask = (1 << (word & UInt(Self.shiftMask))) &- 1
    let place = Int(index) & mask
    let base = UnsafeMutableRawPointer(bitPattern: word & ~UInt(Self.shiftMask))
    return base.unsafelyUnwrapped + place &* stride
  }

  // Guarded by the slab lock.
  nonisolated(unsafe) private static var newest: UnsafeMutableRawPointer? = nil

  /// Allocates a slab of `1 << shift` zeroed slots and makes it findable. Slab lock held.
  func publish(slab: Int, shift: Int) -> Bool {
    let size = Self.alignment &+ stride << shift
    guard let block = Allocator.allocateZeroed(size: size, alignment: Self.alignment) else {
      return false
    }
    // A leak checker does not follow addresses with something in their low bits: so each slab
    // begins with the address of the one before.
    block.storeBytes(of: Self.newest, as: UnsafeMutableRawPointer?.self)
    Self.newest = block
    let word = UInt(bitPattern: block + Self.alignment) | UInt(shift)
    words[slab].store(word, ordering: .releasing)  // pairs with the acquire in `slot`
    return true
  }
}
