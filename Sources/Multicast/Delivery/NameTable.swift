import MulticastShims
import Synchronization

/// The multicasts of a broadcaster by the hashes of their names: one block, a header, the addresses
/// of the chunks that the names are in, and places of 8 bytes, an eighth of which stay empty.
///
/// Threads look names up without a lock while one writer, who holds the lock of names, adds some. A
/// table that is too full is replaced by one of twice the size, and kept for those who may be
/// looking. With very many names it is cache misses that count: hence small places.
struct NameTable {
  struct Header: ~Copyable {
    // Not what readers read first: see `SlotHeader`.
    var count: Int
    var chunkCount: Int
    /// Bytes that are free in the newest chunk.
    var left: Int
    var mask: UInt64
    /// For the hashes; the same in all tables of a broadcaster. Not known to those who choose
    /// names, so that nobody can prepare names that meet.
    var seed: UInt64
    /// The one that this one has replaced.
    var previous: UnsafeMutablePointer<Header>?
  }

  /// A tag from the hash (32 bits), and where the name is: chunk (16) and offset (16); 0 where
  /// there is none.
  private typealias Place = Atomic<UInt64>

  private static let smallestSize = 16
  private static let largestSize = 1 << 24
  private static let headerSize = 64
  private static let alignment = 64

  let header: UnsafeMutablePointer<Header>

  @inline(__always) init(_ header: UnsafeMutablePointer<Header>) { self.header = header }

  private var size: Int { Int(header.pointee.mask) + 1 }

  /// As many chunks as the longest names need.
  @inline(__always) private static func chunkLimit(_ size: Int) -> Int { size / 224 + 8 }

  @inline(__always) private var chunks: UnsafeMutablePointer<UnsafeMutableRawPointer?> {
    (UnsafeMutableRawPointer(header) + Self.headerSize)
      .assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
  }

  @inline(__always) private var places: UnsafeMutablePointer<Place> {
    UnsafeMutableRawPointer(chunks + Self.chunkLimit(size)).assumingMemoryBound(to: Place.self)
  }

  // MARK: - Memory

  private static func byteCount(_ size: Int) -> Int {
    headerSize + chunkLimit(size) * MemoryLayout<UnsafeMutableRawPointer?>.stride
      + size * MemoryLayout<Place>.stride
  }

  /// - Parameter seed: For the hashes, where there is no other.
  /// - Returns: a table with the names of another and room for more.
  static func allocate(replacing other: NameTable?, seed: UInt64) throws(Status) -> NameTable {
    let size = other.map { $0.size * 2 } ?? smallestSize
    guard size <= largestSize else { throw .limit }
    guard let block = Allocator.allocateZeroed(size: byteCount(size), alignment: alignment) else {
      throw .outOfMemory
    }
    let table = NameTable(block.bindMemory(to: Header.self, capacity: 1))
    table.header.pointee.mask = UInt64(size) - 1
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
    other.forEachPlace { word in
      let name = self.name(word).name
      put(word, hash: name.hash(seed: header.pointee.seed))
    }
  }

  /// Frees this table with the text, and those that it has replaced.
  func deallocate() {
    var chunk = 0
    while chunk < header.pointee.chunkCount {
      if let block = chunks[chunk] {
        Allocator.deallocate(
          block, size: Self.chunkSize(chunk), alignment: Self.chunkAlignment)
      }
      chunk += 1
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
    let (places, mask) = (self.places, header.pointee.mask)
    var index = hash & mask
    while true {
      // Acquire: pairs with `put`, so that the name is seen.
      let word = places[Int(truncatingIfNeeded: index)].load(ordering: .acquiring)
      if word == 0 { return nil }
      if (word ^ hash) & Self.tagMask == 0 {
        let known = self.name(word)
        if known.name == name { return known }
      }
      index = (index &+ 1) & mask
    }
  }

  /// What tells most names apart without looking at them: the index is from the low bits.
  private static let tagMask: UInt64 = 0xFFFF_FFFF_0000_0000

  @inline(__always) private func name(_ word: UInt64) -> KnownName {
    let (chunk, offset) = (Int(word >> 16 & 0xFFFF), Int(word & 0xFFFF))
    return KnownName(at: chunks[chunk].unsafelyUnwrapped + offset)
  }

  func forEach(_ body: (KnownName) -> Void) {
    forEachPlace { body(name($0)) }
  }

  private func forEachPlace(_ body: (_ word: UInt64) -> Void) {
    var index = 0
    while index < size {
      let word = places[index].load(ordering: .relaxed)
      if word != 0 { body(word) }
      index += 1
    }
  }

  // MARK: - Adding

  var isFull: Bool { header.pointee.count >= size / 8 * 7 }

  /// Adds a name that is not there. There is a place, and room has been made.
  func add(_ name: Name, _ multicast: UInt64) {
    put(write(name, multicast), hash: name.hash(seed: header.pointee.seed))
    checkInvariants()
  }

  /// - Parameter word: Where the name is, in the low bits; the others do not matter.
  private func put(_ word: UInt64, hash: UInt64) {
    var index = hash & header.pointee.mask
    while places[Int(index)].load(ordering: .relaxed) != 0 {
      index = (index &+ 1) & header.pointee.mask
    }
    let place = (hash & Self.tagMask) | (word & ~Self.tagMask)
    places[Int(index)].store(place, ordering: .releasing)
    header.pointee.count += 1
  }

  // MARK: - Chunks

  private static let chunkAlignment = 64

  /// The first chunks are small, so that few names take little.
  private static func chunkSize(_ chunk: Int) -> Int { 1024 << min(chunk, 6) }

  /// Makes room for the text of a name.
  func makeRoom(for name: Name) throws(Status) {
    if KnownName.size(name) <= header.pointee.left { return }
    let size = Self.chunkSize(header.pointee.chunkCount)
    guard let block = Allocator.allocate(size: size, alignment: Self.chunkAlignment) else {
      throw .outOfMemory
    }
    chunks[header.pointee.chunkCount] = block
    header.pointee.chunkCount += 1
    header.pointee.left = size - KnownName.alignment  // the offset 0 is none
  }

  /// Writes a name behind the last one.
  ///
  /// - Returns: where it is.
  private func write(_ name: Name, _ multicast: UInt64) -> UInt64 {
    let chunk = header.pointee.chunkCount - 1
    let offset = Self.chunkSize(chunk) - header.pointee.left
    KnownName(at: chunks[chunk].unsafelyUnwrapped + offset).initialize(name, multicast)
    header.pointee.left -= KnownName.size(name)
    return UInt64(chunk) << 16 | UInt64(offset)
  }
}
