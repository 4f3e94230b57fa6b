import MulticastShims
import Synchronization

/// A name in the caller's memory or in a table.
struct Name {
  static let longest = 255

  let bytes: UnsafeRawPointer
  let length: Int

  init(bytes: UnsafeRawPointer, length: Int) {
    self.bytes = bytes
    self.length = length
  }

  /// Fails if the name is empty or too long.
  init?(_ text: UnsafePointer<CChar>?) {
    guard let text else { return nil }
    length = shims_length(text, Self.longest + 1)
    guard length > 0 && length <= Self.longest else { return nil }
    bytes = UnsafeRawPointer(text)
  }

  /// Returns a copy of the bytes, followed by a NUL.
  func copy() throws(Status) -> UnsafeMutableRawPointer {
    let text = try Allocator.allocate(size: length + 1, alignment: 1)
    shims_copy(text, bytes, length)
    text.storeBytes(of: 0, toByteOffset: length, as: UInt8.self)
    return text
  }

  static func deallocate(copy text: UnsafeMutableRawPointer) {
    let text = text.assumingMemoryBound(to: CChar.self)
    // A prefix starts with a NUL, so search for the terminating NUL from the second byte on.
    Allocator.deallocate(text, size: shims_length(text + 1, longest) + 2, alignment: 1)
  }

  static func == (a: Name, b: Name) -> Bool {
    a.length == b.length && shims_equal(a.bytes, b.bytes, a.length)
  }

  @_optimize(speed)
  func hash(seed: UInt64) -> UInt64 {
    var hash = Self.mix(seed ^ UInt64(length))
    var offset = 0
    while length &- offset > 8 {
      hash = Self.mix(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset &+= 8
    }
    return Self.mix(hash ^ lastBytes)
  }

  /// The last eight bytes, or all bytes if the name is shorter.
  private var lastBytes: UInt64 {
    if length >= 8 {
      return bytes.loadUnaligned(fromByteOffset: length &- 8, as: UInt64.self)
    }
    if length >= 4 {
      let first = bytes.loadUnaligned(as: UInt32.self)
      let last = bytes.loadUnaligned(fromByteOffset: length &- 4, as: UInt32.self)
      return UInt64(first) | UInt64(last) << 32
    }
    let first = bytes.load(as: UInt8.self)
    let middle = bytes.load(fromByteOffset: length / 2, as: UInt8.self)
    let last = bytes.load(fromByteOffset: length &- 1, as: UInt8.self)
    return UInt64(first) | UInt64(middle) << 8 | UInt64(last) << 16
  }

  /// Every bit of `word` affects every bit of the result.
  private static func mix(_ word: UInt64) -> UInt64 {
    let product = (word ^ 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: 0xD1B5_4A32_D192_ED03)
    return product.high ^ product.low
  }
}

/// A name in a table, stored as a length byte followed by the name's bytes. It exists for as long
/// as the broadcaster does.
struct KnownName {
  private static let bytesOffset = 1

  private let address: UnsafeMutableRawPointer
  private let handle: UnsafeMutablePointer<Atomic<Handle>>

  init(at address: UnsafeMutableRawPointer, _ handle: UnsafeMutablePointer<Atomic<Handle>>) {
    self.address = address
    self.handle = handle
  }

  static func size(_ name: Name) -> Int { bytesOffset + name.length }

  static func write(_ name: Name, at address: UnsafeMutableRawPointer) {
    address.storeBytes(of: UInt8(truncatingIfNeeded: name.length), as: UInt8.self)
    shims_copy(address + bytesOffset, name.bytes, name.length)
  }

  var name: Name {
    let length = address.load(as: UInt8.self)
    return Name(bytes: address + Self.bytesOffset, length: Int(length))
  }

  /// The handle of the name's multicast. It is replaced after a caller has destroyed the multicast.
  /// The setter's release pairs with the getter's acquire, so that a thread that finds the handle
  /// also finds the multicast.
  var multicast: Handle {
    get { handle.pointee.load(ordering: .acquiring) }  // order: table
    nonmutating set { handle.pointee.store(newValue, ordering: .releasing) }
  }
}

/// A hash table of a broadcaster's multicasts. It is one block of memory with a header, places of
/// 16 bytes, and the addresses of the chunks that contain the names. At least one eighth of the
/// places stay empty.
///
/// Threads look up names without a lock while one writer, which holds the names' lock, adds names.
/// A table that becomes too full is replaced with a table twice the size. The old table is kept,
/// because lookups may still be using it. In a table with very many names, cache misses dominate
/// the cost of a lookup. A place therefore contains the multicast's handle, so that the processor
/// can fetch the multicast and the name at the same time.
struct NameTable {
  struct Header: ~Copyable {
    // Fields that lookups do not read come first, because the thread sanitizer would otherwise
    // report false races (see `SlotHeader`).
    var count: Int
    var chunkCount: Int
    /// The number of free bytes in the newest chunk.
    var left: Int
    /// A hash ANDed with this mask is the offset of a place in bytes. Therefore the lowest bits of
    /// the mask are zero.
    var mask: UInt64
    /// The seed of the hashes, the same for all tables of a broadcaster. It is unpredictable, so
    /// that nobody can choose names that collide.
    var seed: UInt64
    /// The smaller table that this table has replaced.
    var previous: UnsafeMutablePointer<Header>?
  }

  private struct Place {
    static let stride = 16
    let address: UnsafeMutableRawPointer

    /// A tag from the hash (32 bits), the number of the name's chunk (16 bits), and the name's
    /// offset in the chunk (16 bits); 0 if the place is empty.
    var word: UnsafeMutablePointer<Atomic<UInt64>> {
      address.assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    var multicast: UnsafeMutablePointer<Atomic<Handle>> {
      (address + 8).assumingMemoryBound(to: Atomic<Handle>.self)
    }
  }

  private static let smallestSize = 16
  private static let largestSize = 1 << 24
  private static let headerSize = 64
  private static let alignment = 64

  let header: UnsafeMutablePointer<Header>

  init(_ header: UnsafeMutablePointer<Header>) { self.header = header }

  var size: Int { Int(header.pointee.mask) / Place.stride + 1 }

  /// The maximum number of chunks, needed if all names have the maximum length.
  private static func chunkLimit(_ size: Int) -> Int { size / 224 + 8 }

  private var places: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(header) + Self.headerSize
  }

  private func place(_ offset: UInt64) -> Place {
    Place(address: places + Int(truncatingIfNeeded: offset))
  }

  /// The offset of the next place. The first place follows the last.
  private func next(after offset: UInt64) -> UInt64 {
    (offset &+ UInt64(Place.stride)) & header.pointee.mask
  }

  private var chunks: UnsafeMutablePointer<UnsafeMutableRawPointer?> {
    let last = place(header.pointee.mask).address
    return (last + Place.stride).assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
  }

  // MARK: - Memory

  private static func byteCount(_ size: Int) -> Int {
    headerSize + chunkLimit(size) * MemoryLayout<UnsafeMutableRawPointer?>.stride
      + size * Place.stride
  }

  /// - Parameter seed: The seed of the hashes; ignored if `other` is not nil.
  /// - Returns: a table that contains the names of `other`, if any, and has room for more.
  static func allocate(replacing other: NameTable?, seed: UInt64) throws(Status) -> NameTable {
    let size = other.map { $0.size * 2 } ?? smallestSize
    guard size <= largestSize else { throw .limit }
    let block = try Allocator.allocateZeroed(size: byteCount(size), alignment: alignment)
    let table = NameTable(block.bindMemory(to: Header.self, capacity: 1))
    table.header.pointee.mask = UInt64((size - 1) * Place.stride)
    table.header.pointee.seed = seed
    if let other { table.take(from: other) }
    table.checkInvariants()
    return table
  }

  private func take(from other: NameTable) {
    header.pointee.seed = other.header.pointee.seed
    header.pointee.previous = other.header
    header.pointee.chunkCount = other.header.pointee.chunkCount
    header.pointee.left = other.header.pointee.left
    shims_copy(
      chunks, other.chunks,
      header.pointee.chunkCount * MemoryLayout<UnsafeMutableRawPointer?>.stride)
    var index = 0
    while let (word, known) = other.nextPlace(&index) {
      put(word, known.multicast, hash: known.name.hash(seed: header.pointee.seed))
    }
  }

  /// Frees this table, the names, and all smaller tables that this table has replaced.
  func deallocate() {
    for chunk in 0..<header.pointee.chunkCount {
      Allocator.deallocate(
        chunks[chunk].unsafelyUnwrapped, size: Self.chunkSize(chunk), alignment: Self.alignment)
    }
    var next: UnsafeMutablePointer<Header>? = header
    while let current = next {
      next = current.pointee.previous
      Allocator.deallocate(
        current, size: Self.byteCount(NameTable(current).size), alignment: Self.alignment)
    }
  }

  // MARK: - Looking up

  @inline(__always)
  func find(_ name: Name) -> KnownName? {
    let hash = name.hash(seed: header.pointee.seed)
    var offset = hash & header.pointee.mask
    while true {
      // Acquire: pairs with the release in `put`, so that this thread sees the name and the
      // multicast.
      let place = place(offset)
      let word = place.word.pointee.load(ordering: .acquiring)  // order: place
      if word == 0 { return nil }
      if (word ^ hash) & Self.tagMask == 0 {
        let known = self.name(word, place)
        if known.name == name { return known }
      }
      offset = next(after: offset)
    }
  }

  /// Different names usually have different tags, so a search reads few names. The tag does not
  /// contain the low bits of the hash, which select the place.
  private static let tagMask: UInt64 = 0xFFFF_FFFF_0000_0000

  private func name(_ word: UInt64, _ place: Place) -> KnownName {
    let (chunk, offset) = (Int(word >> 16 & 0xFFFF), Int(word & 0xFFFF))
    return KnownName(at: chunks[chunk].unsafelyUnwrapped + offset, place.multicast)
  }

  /// Returns the next name, in an arbitrary order. `index` is 0 initially.
  func next(_ index: inout Int) -> KnownName? { nextPlace(&index)?.name }

  private func nextPlace(_ index: inout Int) -> (word: UInt64, name: KnownName)? {
    while index < size {
      let place = place(UInt64(index * Place.stride))
      let word = place.word.pointee.load(ordering: .relaxed)
      index += 1
      if word != 0 { return (word, name(word, place)) }
    }
    return nil
  }

  /// A multicast's name. The caller holds the names' lock.
  func name(of multicast: Handle) -> Name? {
    var index = 0
    while let known = next(&index) { if known.multicast == multicast { return known.name } }
    return nil
  }

  // MARK: - Adding

  var isFull: Bool { header.pointee.count >= size / 8 * 7 }

  /// Adds a name that is not in the table. The table must not be full, and `makeRoom` must have
  /// been called.
  func add(_ name: Name, _ multicast: Handle) {
    put(write(name), multicast, hash: name.hash(seed: header.pointee.seed))
    checkInvariants()
  }

  /// - Parameter word: The low bits are the chunk and offset of the name. The other bits are
  ///   ignored.
  private func put(_ word: UInt64, _ multicast: Handle, hash: UInt64) {
    var offset = hash & header.pointee.mask  //~ name_in_wrong_place
    while place(offset).word.pointee.load(ordering: .relaxed) != 0 {
      offset = next(after: offset)
    }
    let place = place(offset)
    place.multicast.pointee.store(multicast, ordering: .relaxed)
    let tagged = (hash & Self.tagMask) | (word & ~Self.tagMask)
    place.word.pointee.store(tagged, ordering: .releasing)  // order: place
    header.pointee.count += 1  //~ name_not_counted
  }

  // MARK: - Chunks

  /// The first chunks are small, so that a few names use little memory.
  private static func chunkSize(_ chunk: Int) -> Int { 1024 << min(chunk, 6) }

  func makeRoom(for name: Name) throws(Status) {
    if KnownName.size(name) <= header.pointee.left { return }
    let size = Self.chunkSize(header.pointee.chunkCount)
    chunks[header.pointee.chunkCount] = try Allocator.allocate(
      size: size, alignment: Self.alignment)
    header.pointee.chunkCount += 1
    header.pointee.left = size - 1  // offset 0 is unused, because 0 means empty
  }

  /// Writes a name into the newest chunk, and returns the chunk and offset of the name.
  private func write(_ name: Name) -> UInt64 {
    let chunk = header.pointee.chunkCount - 1
    let offset = Self.chunkSize(chunk) - header.pointee.left
    KnownName.write(name, at: chunks[chunk].unsafelyUnwrapped + offset)
    header.pointee.left -= KnownName.size(name)
    return UInt64(chunk) << 16 | UInt64(offset)
  }
}

/// Checks that each name can be found and is counted. The caller holds the names' lock.
extension NameTable: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      let size = UInt64(self.size)
      check.that(size & (size - 1) == 0, "a size is a power of two", size)
      check.that(
        header.pointee.count < Int(size), "an empty place ends each search", header.pointee.count,
        size)
      check.that(
        header.pointee.left >= 0 && header.pointee.chunkCount >= 0, "what is left is not negative")
      if Int(Check.reach()) < header.pointee.count { return }

      var (count, index) = (0, 0)
      while let known = next(&index) {
        count += 1
        check.that(
          known.name.length > 0 && known.name.length <= Name.longest, "names have a length",
          known.name.length)
        check.that(
          find(known.name)?.name.bytes == known.name.bytes, "each name is found where it is", count)
        check.that(
          known.multicast.kind == .multicast, "each name has a multicast", known.multicast.rawValue)
      }
      check.that(count == header.pointee.count, "names are counted", count, header.pointee.count)
    }
  #endif
}
