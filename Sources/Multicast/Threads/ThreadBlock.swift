import MulticastShims
import Synchronization

/// A block of places for thread records. For each place, a bit says whether a thread owns the
/// record in this place.
///
/// Blocks and records are never freed. A reader skips blocks without owners, and reads the bits of
/// the other blocks 64 at a time. Therefore the records of threads that have ended cost readers
/// almost nothing. All records except the first 64 are in memory mapped from the system, in groups
/// of 64. If no record of a group has an owner, the pages of the group can be returned to the
/// system (see `discardIdle`).
struct ThreadBlock {
  struct Storage: ~Copyable {
    /// The number of the first record.
    var firstNumber: UInt32
    /// The number of records that threads own. A thread is counted before it publishes its first
    /// frame, and stays counted until after it has withdrawn its last frame. After a thread has
    /// given up its record, it may stay counted for a moment.
    let ownerCount: Atomic<UInt32>
    /// The number of groups of 64 places each.
    var groupCount: Int
    let next: Atomic<UnsafeMutablePointer<Storage>?>
  }

  /// The bits of a group, one for each of its 64 places.
  typealias Bits = Atomic<UInt64>

  // The bits of all groups fill two cache lines, one for owned records and one for existing
  // records.
  private static let ownedOffset = 64
  private static let existingOffset = 128
  private static let recordsOffset = 192
  private static let alignment = 64
  /// The number of groups in the first block, and in each later block.
  private static let (fewGroups, manyGroups) = (1, 8)

  let storage: UnsafeMutablePointer<Storage>

  init(_ storage: UnsafeMutablePointer<Storage>) { self.storage = storage }

  /// Allocates a block without records, to be linked after the last block. The caller holds the
  /// slab lock.
  static func allocate(after last: ThreadBlock?) throws(Status) -> ThreadBlock {
    let groupCount = last == nil ? fewGroups : manyGroups
    let size = recordsOffset + groupCount * 64 * MemoryLayout<UnsafeMutableRawPointer?>.stride
    let block = try Allocator.allocateZeroed(size: size, alignment: alignment)
    let new = ThreadBlock(block.bindMemory(to: Storage.self, capacity: 1))
    new.storage.pointee.firstNumber = last?.endNumber ?? 1
    new.storage.pointee.groupCount = groupCount
    return new
  }

  /// Acquire: pairs with the release in `link`.
  var next: ThreadBlock? {
    storage.pointee.next.load(ordering: .acquiring).map { ThreadBlock($0) }  // order: block
  }

  struct List: Sequence, IteratorProtocol {
    var rest: ThreadBlock?

    mutating func next() -> ThreadBlock? {
      let block = rest
      rest = block?.next
      return block
    }
  }

  func link(_ block: ThreadBlock) {
    storage.pointee.next.store(block.storage, ordering: .releasing)  // order: block
  }

  // MARK: - Records

  var groupCount: Int { storage.pointee.groupCount }

  /// One more than the number of the last record.
  var endNumber: UInt32 { storage.pointee.firstNumber &+ UInt32(groupCount * 64) }

  private func bits(_ offset: Int, _ group: Int) -> UnsafeMutablePointer<Bits> {
    (UnsafeMutableRawPointer(storage) + offset).assumingMemoryBound(to: Bits.self) + group
  }

  /// The places. Each place contains the address of a record, which never changes once it has been
  /// stored.
  private var records: UnsafeMutablePointer<UnsafeMutablePointer<ThreadRecord.Storage>?> {
    (UnsafeMutableRawPointer(storage) + Self.recordsOffset)
      .assumingMemoryBound(to: UnsafeMutablePointer<ThreadRecord.Storage>?.self)
  }

  /// The record in a place, which must not be empty.
  func record(_ group: Int, _ bit: Int) -> ThreadRecord {
    ThreadRecord(records[group * 64 + bit].unsafelyUnwrapped)
  }

  /// The bits of the owned records of a group. Acquire: pairs with the release in `add`, so that
  /// the contents of these records are visible.
  func owned(_ group: Int) -> UInt64 {
    bits(Self.ownedOffset, group).pointee.load(ordering: .acquiring)  // order: record
  }

  /// Whether any thread owns a record of the block. Acquire: pairs with the release in `giveBack`,
  /// so that a reader that finds no owners sees the effects of the owners' calls.
  var hasOwners: Bool {
    storage.pointee.ownerCount.load(ordering: .acquiring) != 0  // order: record
  }

  /// The bits of the existing records of a group. Acquire: pairs with the release in `add`.
  private func existing(_ group: Int) -> UInt64 {
    bits(Self.existingOffset, group).pointee.load(ordering: .acquiring)  // order: record
  }

  // MARK: - Owners

  /// Makes the calling thread the owner of a record that has no owner.
  ///
  /// The thread sets the record's owned bit before it publishes a frame. So if a reader does not
  /// see the bit after its heavy fence, it misses only frames of invocations that begin later.
  func takeIdle() -> ThreadRecord? {
    var group = 0
    while group < groupCount {
      let idle = existing(group) & ~owned(group)
      if idle == 0 {
        group &+= 1
        continue
      }
      let bit: UInt64 = idle & ~(idle &- 1)
      // Acquire: pairs with the releases in `giveBack` and `discardIdle`.
      // order: next_owner
      let before = bits(Self.ownedOffset, group).pointee.bitwiseOr(bit, ordering: .acquiring)
      if before.oldValue & bit == 0 {
        // Relaxed is enough: like the bit, the count changes before the owner publishes a frame.
        storage.pointee.ownerCount.wrappingAdd(1, ordering: .relaxed)  //~ owner_not_counted
        let record = record(group, bit.trailingZeroBitCount)
        if record.number == 0 { prepare(record, group, bit.trailingZeroBitCount) }
        return record
      }
    }
    return nil
  }

  /// Returns to the system the pages of each group in which no record has an owner. Afterwards the
  /// pages read as zeros, which represent records without an owner and without frames in use. The
  /// caller holds the slab lock.
  ///
  /// While this function discards a group, the calling thread owns all 64 records of the group, so
  /// no other thread takes one of them. A reader finds no frame in use, whether or not the pages
  /// are already zero.
  ///
  /// - Returns: the number of bytes that were returned to the system.
  func discardIdle() -> Int {
    guard isMapped else { return 0 }
    var bytes = 0
    for group in 0..<groupCount {
      let all = existing(group)
      let owned = bits(Self.ownedOffset, group)
      // Acquire: pairs with the release in `giveBack`. The release below pairs with the acquire in
      // `takeIdle`.
      if all != 0,
        // order: next_owner
        owned.pointee.compareExchange(expected: 0, desired: all, ordering: .acquiring).exchanged
      {
        // The first record of a group is taken before the others. So if that record is zero, the
        // other records are also zero.
        if record(group, 0).number != 0 { bytes &+= discard(group) }
        owned.pointee.bitwiseAnd(~all, ordering: .releasing)  // order: next_owner
      }
    }
    return bytes
  }

  /// Ends the ownership of all records except the survivor's. The survivor is the only thread in
  /// the child of a fork.
  ///
  /// If a group does not contain the survivor's record, the pages of the group are returned to the
  /// system. If the child wrote to thousands of records instead, the system would have to copy a
  /// page for each of them.
  func disown(but survivor: ThreadRecord?) {
    var left: UInt32 = 0
    for group in 0..<groupCount {
      let all = owned(group)
      var (others, rest) = (all, all)
      while rest != 0 {
        let record = record(group, rest.trailingZeroBitCount)
        let bit = rest & ~(rest &- 1)
        if record == survivor { others &= ~bit } else { record.giveBackSlots() }
        rest &= ~bit
      }
      if others != all { left = 1 }
      if others != all || !isMapped || discard(group) == 0 {
        rest = others
        while rest != 0 {
          record(group, rest.trailingZeroBitCount).identity = .none
          rest &= rest &- 1
        }
      }
      bits(Self.ownedOffset, group).pointee.store(all & ~others, ordering: .relaxed)
    }
    // Set the count instead of decrementing it, because at the moment of the fork, another thread
    // may have changed its bit but not yet the count.
    storage.pointee.ownerCount.store(left, ordering: .relaxed)
  }

  /// Returns the pages of a group to the system, if possible. If the result, in bytes, is not 0,
  /// all records of the group are now zero.
  private func discard(_ group: Int) -> Int {
    let all = existing(group)
    if all == 0 { return 0 }
    return shims_discard(record(group, 0).storage, all.nonzeroBitCount &* ThreadRecord.size)
  }

  private var isMapped: Bool { storage.pointee.firstNumber > 1 && Allocator.isLibc }

  private func allocate(_ group: Int, _ place: Int) throws(Status) -> ThreadRecord {
    if !isMapped { return try ThreadRecord.allocate() }
    let first =
      place > 0
      ? UnsafeMutableRawPointer(record(group, 0).storage) : shims_map(64 * ThreadRecord.size)
    guard let first else { throw .outOfMemory }
    let block = first + place * ThreadRecord.size
    return ThreadRecord(block.bindMemory(to: ThreadRecord.Storage.self, capacity: 1))
  }

  /// Initializes a record that is all zeros. The record's number is stored last, after a fence. So
  /// if another thread forks earlier, the child finds that the record is not prepared.
  private func prepare(_ record: ThreadRecord, _ group: Int, _ place: Int) {
    record.reset()
    record.storage.pointee.block = storage
    Fence.full()
    record.storage.pointee.number = storage.pointee.firstNumber &+ UInt32(group * 64 + place)
  }

  /// Ends the ownership of a record of this block. Release: pairs with the acquire in `takeIdle`. A
  /// multicast cannot distinguish the record's next owner from this thread, so the next owner has
  /// to see everything that this thread has done.
  func giveBack(_ record: ThreadRecord) {
    let (group, bit) = place(of: record)
    // order: next_owner
    bits(Self.ownedOffset, group).pointee.bitwiseAnd(~bit, ordering: .releasing)
    // Release: pairs with the acquire in `hasOwners`.
    storage.pointee.ownerCount.wrappingSubtract(1, ordering: .releasing)  // order: record
  }

  func owns(_ record: ThreadRecord) -> Bool {
    let (group, bit) = place(of: record)
    return hasOwners && owned(group) & bit != 0
  }

  /// The record with the given number, which must be less than `endNumber`; nil if no thread owns
  /// the record.
  func ownedRecord(_ number: UInt32) -> ThreadRecord? {
    if number < storage.pointee.firstNumber { return nil }
    let (group, bit) = place(of: number)
    return owned(group) & bit != 0 ? record(group, bit.trailingZeroBitCount) : nil
  }

  private func place(of record: ThreadRecord) -> (group: Int, bit: UInt64) {
    place(of: record.number)
  }

  private func place(of number: UInt32) -> (group: Int, bit: UInt64) {
    let place = number &- storage.pointee.firstNumber
    return (Int(place / 64), 1 << UInt64(place % 64))
  }

  /// Adds a record, owned by the calling thread, or returns nil if all places are filled. The
  /// caller holds the slab lock.
  func add() throws(Status) -> ThreadRecord? {
    var group = 0
    while group < groupCount && existing(group) == .max { group &+= 1 }
    if group == groupCount { return nil }
    let place = (~existing(group)).trailingZeroBitCount
    let record = try allocate(group, place)
    let bit: UInt64 = 1 << UInt64(place)
    prepare(record, group, place)
    records[group * 64 + place] = record.storage
    // Release: a thread that sees either bit also sees the record. Set the owned bit first, so that
    // no other thread claims the record.
    storage.pointee.ownerCount.wrappingAdd(1, ordering: .relaxed)
    // order: record
    bits(Self.ownedOffset, group).pointee.bitwiseOr(bit, ordering: .releasing)  //~ record_not_owned
    bits(Self.existingOffset, group).pointee.bitwiseOr(bit, ordering: .releasing)  // order: record
    return record
  }
}
