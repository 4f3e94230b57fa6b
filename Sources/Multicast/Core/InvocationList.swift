import CMulticast
import MulticastShims
import Synchronization

/// The delegates of a multicast in order of invocation: one block, a header and entries of 32
/// bytes.
///
/// Invocations read it without a lock while one writer, who holds the stripe's lock, appends and
/// marks. An entry is written once, before the count says that it is there; only its state changes
/// then. A list that is too small or too full of dead entries is replaced by another.
struct InvocationList {
  struct Header: ~Copyable {
    // Not the count first: the thread sanitizer takes a change of any field of a struct for one of
    // its first byte, and that would be read by invocations.
    var capacity: UInt32
    /// Entries that invocations may read.
    let count: Atomic<UInt32>
    /// Entries that are not dead.
    var live: UInt32
    /// The priority of the last entry: what may be appended has none higher.
    var lastPriority: Int32
    /// Of the entry that comes next: ranks rise in a list, also in one copied from it.
    var nextRank: UInt32
    /// Lists of the same era number the same entries alike.
    var era: UInt32
    /// The handle of the multicast: its slot may have another inhabitant before this list is freed.
    var owner: UInt64
    /// Once retired: invocations that began before this ticket may still read the list...
    var ticket: UInt64
    /// ...and may be found only after a heavy fence, unless this thread alone invokes.
    var needsFence: Bool
    var next: UnsafeMutablePointer<Header>?
  }

  struct Entry: ~Copyable {
    var function: multicast_function
    var context: UnsafeMutableRawPointer?
    var token: UInt64
    let state: Atomic<UInt32>
    var rank: UInt32
  }

  /// What an entry is made from.
  struct NewEntry {
    let function: multicast_function
    let context: UnsafeMutableRawPointer?
    let registration: Registration
    let token: UInt64
    let state: UInt32
  }

  /// Bits of an entry's state. A plain, live delegate has none of the low ones.
  enum State {
    static let dead: UInt32 = 0x01
    static let paused: UInt32 = 0x02
    static let once: UInt32 = 0x04
    static let filtered: UInt32 = 0x08
    /// Its context is locked for each call.
    static let weak: UInt32 = 0x10
    /// Its calls wait in a queue.
    static let queued: UInt32 = 0x20
    /// All that make an invocation look twice.
    static let special: UInt32 = 0xFF
    /// Its priority is not 0, and stands in its registration's extras.
    static let prioritized: UInt32 = 0x100
  }

  private static let smallestCapacity: UInt32 = 2
  static let headerSize = 64
  private static let alignment = 64

  let header: UnsafeMutablePointer<Header>

  @inline(__always) init(_ header: UnsafeMutablePointer<Header>) { self.header = header }

  /// Entries begin on a cache line, two to each.
  @inline(__always) var entries: UnsafeMutablePointer<Entry> {
    (UnsafeMutableRawPointer(header) + Self.headerSize).assumingMemoryBound(to: Entry.self)
  }

  /// For the writer: how many entries there are, dead ones too.
  var count: UInt32 { header.pointee.count.load(ordering: .relaxed) }
  var live: UInt32 { header.pointee.live }
  var dead: UInt32 { count &- live }
  var room: UInt32 { header.pointee.capacity &- count }

  /// Whether it is worth while to copy it to a smaller one.
  var isSparse: Bool { header.pointee.capacity > 30 && live < header.pointee.capacity / 8 }
  /// Whether too little of it is live.
  var isUntidy: Bool { dead > live &+ 8 || isSparse }

  @inline(__always) func entry(_ position: UInt32) -> UnsafeMutablePointer<Entry> {
    entries + Int(position)
  }

  // MARK: - Memory

  private static func size(_ capacity: UInt32) -> Int {
    headerSize &+ Int(capacity) &* MemoryLayout<Entry>.stride
  }

  /// A capacity for so many delegates, of the sizes that fill powers of two: 2, 6, 14, 30, …
  static func capacity(for count: UInt32) -> UInt32 {
    var capacity = smallestCapacity
    while capacity < count { capacity = capacity &* 2 &+ 2 }
    return capacity
  }

  /// - Returns: an empty list, or nil when out of memory.
  static func allocate(capacity: UInt32, owner: UInt64) -> InvocationList? {
    guard let block = Allocator.allocate(size: size(capacity), alignment: alignment) else {
      return nil
    }
    shims_zero(block, headerSize)
    let list = InvocationList(block.bindMemory(to: Header.self, capacity: 1))
    list.header.pointee.capacity = capacity
    list.header.pointee.lastPriority = .max
    list.header.pointee.owner = owner
    return list
  }

  func deallocate() {
    Allocator.deallocate(
      header, size: Self.size(header.pointee.capacity), alignment: Self.alignment)
  }

  // MARK: - Adding

  /// Whether entries of this priority go last, and can be numbered in this era.
  func canAppend(_ count: UInt32, priority: Int32) -> Bool {
    priority <= header.pointee.lastPriority && header.pointee.nextRank <= .max &- count
  }

  /// Writes an entry behind the last one and those written since, and tells its registration. It
  /// is not part of the list until `publish`.
  func write(_ new: NewEntry, ahead: UInt32) {
    let position = count &+ ahead
    let entry = self.entry(position)
    entry.pointee.function = new.function
    entry.pointee.context = new.context
    entry.pointee.token = new.token
    entry.pointee.rank = header.pointee.nextRank &+ ahead
    entry.pointee.state.store(new.state, ordering: .relaxed)
    new.registration.storage.pointee.link = position
  }

  /// Makes the entries written behind the last one part of the list.
  func publish(_ added: UInt32, priority: Int32) {
    header.pointee.live &+= added
    header.pointee.nextRank &+= added
    header.pointee.lastPriority = priority
    // Release: pairs with the acquire of the invocation that reads the count, then the entries.
    header.pointee.count.store(count &+ added, ordering: .releasing)
  }

  // MARK: - Finding and marking

  @inline(__always) static func isDead(_ entry: UnsafeMutablePointer<Entry>) -> Bool {
    entry.pointee.state.load(ordering: .relaxed) & State.dead != 0
  }

  /// The place of a delegate that stands at a place in another list of the same multicast; nil
  /// where it is not here.
  ///
  /// - Complexity: O(log n); where a list was written anew in between, as far as it was moved.
  func position(of token: UInt64, at place: UInt32, in other: InvocationList) -> UInt32? {
    if other.header.pointee.era != header.pointee.era { return position(of: token, near: place) }
    let rank = other.entry(place).pointee.rank
    var (low, high) = (UInt32(0), count)
    while low < high {
      let middle = (low &+ high) / 2
      if entry(middle).pointee.rank < rank { low = middle &+ 1 } else { high = middle }
    }
    return low < count && entry(low).pointee.token == token ? low : nil
  }

  private func position(of token: UInt64, near place: UInt32) -> UInt32? {
    let middle = min(place, count)
    var distance: UInt32 = 0
    while distance <= middle || distance < count &- middle {
      let (above, below) = (middle &+ distance, middle &- distance)
      if above < count && entry(above).pointee.token == token { return above }
      if distance <= middle && below < count && entry(below).pointee.token == token {
        return below
      }
      distance &+= 1
    }
    return nil
  }

  /// The place of the first live delegate that matches, from a place on.
  @inline(__always)
  func firstPosition(
    from start: UInt32 = 0, where matches: (UnsafeMutablePointer<Entry>) -> Bool
  ) -> UInt32? {
    var position = start
    while position < count {
      if !Self.isDead(entry(position)) && matches(entry(position)) { return position }
      position &+= 1
    }
    return nil
  }

  /// Sets and clears bits of a state. Relaxed: a writer that must know that invocations have seen
  /// them asks for a heavy fence, which pairs with the light one before an invocation looks.
  func mark(_ position: UInt32, set: UInt32, clear: UInt32 = 0) {
    let state = entry(position).pointee.state.load(ordering: .relaxed)
    entry(position).pointee.state.store((state | set) & ~clear, ordering: .relaxed)
  }

  static func delegate(of entry: UnsafeMutablePointer<Entry>) -> multicast_delegate {
    multicast_delegate(function: entry.pointee.function, context: entry.pointee.context)
  }

  static func priority(of entry: UnsafeMutablePointer<Entry>) -> Int32 {
    guard entry.pointee.state.load(ordering: .relaxed) & State.prioritized != 0 else { return 0 }
    let registration = Registration(index: Handle.index(of: entry.pointee.token))
    return registration.storage.pointee.extras.unsafelyUnwrapped.pointee.priority
  }

  // MARK: - Making room

  /// Copies live entries behind those of another list, which has room for them.
  ///
  /// - Parameters:
  ///   - start: The first place to copy from.
  ///   - lowest: Stops before the first live entry of a lower priority.
  /// - Returns: the place of the first entry that was not copied.
  func copyLive(to other: InvocationList, from start: UInt32 = 0, lowest: Int32 = .min) -> UInt32 {
    other.header.pointee.era = header.pointee.era
    other.header.pointee.nextRank = header.pointee.nextRank
    let mayBreak = lowest > header.pointee.lastPriority
    var position = start
    if start == 0 && other.count == 0 && !mayBreak { position = copyUntilDead(to: other) }
    while position < count {
      let entry = self.entry(position)
      if !Self.isDead(entry) {
        if mayBreak && Self.priority(of: entry) < lowest { break }
        other.take(entry)
      }
      position &+= 1
    }
    other.header.pointee.lastPriority = header.pointee.lastPriority
    return position
  }

  /// Copies those that keep their places, so that their registrations need not be told: most often
  /// all that there are.
  private func copyUntilDead(to other: InvocationList) -> UInt32 {
    var end: UInt32 = 0
    while end < count && !Self.isDead(entry(end)) { end &+= 1 }
    shims_copy(other.entries, entries, Int(end) &* MemoryLayout<Entry>.stride)
    other.header.pointee.live = end
    other.header.pointee.count.store(end, ordering: .relaxed)
    return end
  }

  /// Numbers all entries anew, so that they cannot be found by rank in lists from before. Not read
  /// by any invocation yet.
  func beginEra() {
    var position: UInt32 = 0
    while position < count {
      entry(position).pointee.rank = position
      position &+= 1
    }
    header.pointee.nextRank = count
    header.pointee.era &+= 1
  }

  /// Moves the live entries together, where no invocation reads the list.
  func compactInPlace() {
    let end = count
    header.pointee.count.store(0, ordering: .relaxed)
    header.pointee.live = 0
    var position: UInt32 = 0
    while position < end {
      if !Self.isDead(entry(position)) { take(entry(position)) }
      position &+= 1
    }
    refreshLastPriority()
  }

  /// Forgets dead entries at the end, where no invocation reads the list.
  func dropDeadTail() {
    var end = count
    while end > 0 && Self.isDead(entry(end &- 1)) { end &-= 1 }
    header.pointee.count.store(end, ordering: .relaxed)
    refreshLastPriority()
  }

  /// Copies an entry behind the last one and tells its registration where it is now.
  private func take(_ other: UnsafeMutablePointer<Entry>) {
    let position = count
    if entry(position) != other {
      shims_copy(entry(position), other, MemoryLayout<Entry>.stride)
    }
    let registration = Registration(index: Handle.index(of: entry(position).pointee.token))
    registration.storage.pointee.link = position
    header.pointee.live &+= 1
    header.pointee.count.store(position &+ 1, ordering: .relaxed)
  }

  func refreshLastPriority() {
    header.pointee.lastPriority = count == 0 ? .max : Self.priority(of: entry(count &- 1))
  }
}
