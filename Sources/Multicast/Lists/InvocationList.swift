import MulticastHeader
import MulticastShims
import Synchronization

/// The delegates of a multicast in order of invocation: one block of memory, with a header and
/// entries of 32 bytes.
///
/// Invocations read it without a lock, while one writer appends and marks. The writer holds the
/// stripe's lock. An entry is written once, before the count includes it; after that only its state
/// changes. A list that is too small, or has too many dead entries, is replaced by another.
struct InvocationList {
  struct Header: ~Copyable {
    // Not the count first: the thread sanitizer reports a change of any field of a struct as a
    // change of its first bytes, and invocations read the count.
    var capacity: UInt32
    /// Entries that invocations may read.
    let count: Atomic<UInt32>
    /// Entries that are not dead.
    var live: UInt32
    /// The priority of the last entry. A delegate of a higher priority cannot be appended.
    var lastPriority: Int32
    /// The place behind the last entry that has an older place.
    var oldEnd: UInt32
    /// Up to which count an add appends without a look: the capacity; less where a watch is to be
    /// notified by a listener warning.
    var limit: UInt32
    /// The handle of the multicast. Its slot may have another occupant before this list is freed.
    var owner: Handle
    /// Once retired: twice the epoch, plus `needsFence`. Before: `warningCount`, and above 32 bits
    /// `warningWatch`.
    private var retirement: UInt64
    var next: Address?

    /// Once retired: invocations that began before this epoch may still read the list.
    var retiredAt: Epoch { Epoch(rawValue: retirement >> 1) }
    /// Once retired: whether those invocations are visible only after a heavy fence. They are
    /// visible without one if this thread was the single invoker, or if they make full fences.
    var needsFence: Bool { retirement & 1 != 0 }

    /// Of the current list: how many live delegates a watch is notified of next; 0: not known.
    /// As many do not fit below the limit.
    var warningCount: UInt32 { UInt32(truncatingIfNeeded: retirement) }
    /// The number of that watch. A list may still have the number of a watch that was replaced.
    var warningWatch: UInt32 { UInt32(truncatingIfNeeded: retirement >> 32) }

    mutating func setWarning(_ count: UInt32, of watch: UInt32) {
      retirement = UInt64(watch) << 32 | UInt64(count)
      limit = min(capacity, count &- 1)
    }

    mutating func retire(at epoch: Epoch, needsFence: Bool) {
      retirement = epoch.rawValue << 1 | (needsFence ? 1 : 0)
    }
  }

  struct Entry: ~Copyable {
    var function: multicast_function
    var context: UnsafeMutableRawPointer?
    var token: Token
    let state: Atomic<UInt32>
    /// Its place in the next older list of the same multicast, the one that this list, or a list
    /// in between, was copied from; `none` if it is not there. Without an older list: anything.
    /// For writers only. Atomic, because invocations read the rest of the entry meanwhile.
    let oldPlace: Atomic<UInt32>

    static var none: UInt32 { .max }
  }

  /// The contents of an entry that is to be appended.
  struct NewEntry {
    let function: multicast_function
    let context: UnsafeMutableRawPointer?
    let registration: Registration
    let token: Token
    let state: UInt32
  }

  /// Bits of an entry's state. A plain, live delegate has none of the low eight bits.
  enum State {
    static let dead: UInt32 = 0x01
    static let paused: UInt32 = 0x02
    static let once: UInt32 = 0x04
    static let filtered: UInt32 = 0x08
    /// The context is locked for each call.
    static let weak: UInt32 = 0x10
    /// Calls wait in a queue.
    static let queued: UInt32 = 0x20
    /// The context is locked for each call, by functions that are the multicast's.
    static let shared: UInt32 = 0x40
    /// Every bit for which an invocation leaves its fast path.
    static let special: UInt32 = 0xFF
    /// The priority is not 0. It is in the registration's details.
    static let prioritized: UInt32 = 0x100
    /// The registration has details, or a release function.
    static let hasPendingCleanup: UInt32 = 0x200
    /// The index of the list has it, if there is an index.
    static let indexed: UInt32 = 0x400
  }

  /// Behind the entries of a large list. For the writer.
  private struct Trailer {
    var index: UnsafeMutableRawPointer? = nil
    /// How many entries were looked at in searches for a delegate, without an index.
    var searched: UInt64 = 0
  }

  private static let smallestCapacity: UInt32 = 1
  /// A list has a trailer from this capacity on. Smaller ones are searched in a microsecond.
  private static let largeCapacity: UInt32 = 1000
  /// To index one entry takes as long as to search so many.
  private static let searchesForIndex: UInt64 = 64
  private static let headerSize = 48

  /// That of the first entry. The header is before it: an invocation reads little of the header.
  typealias Address = UnsafeMutablePointer<Entry>

  let address: Address

  init(_ address: Address) { self.address = address }

  private var block: UnsafeMutablePointer<Header> {
    (UnsafeMutableRawPointer(address) - Self.headerSize).assumingMemoryBound(to: Header.self)
  }

  /// The header, in place.
  var header: Header {
    unsafeAddress { UnsafePointer(block) }
    nonmutating unsafeMutableAddress { block }
  }

  /// For the writer: how many entries there are, dead ones included.
  var count: UInt32 { header.count.load(ordering: .relaxed) }
  var live: UInt32 { header.live }
  var dead: UInt32 { count &- live }
  var room: UInt32 { header.capacity &- count }
  /// Whether one more can be appended, and nothing has to be notified of it.
  var hasRoomAtOnce: Bool { count < header.limit }  //~ limit_ignored

  /// Whether a smaller list would save enough to be worth a copy.
  var isSparse: Bool { header.capacity > 30 && live < header.capacity / 8 }
  /// Whether too little of it is live.
  var needsCompaction: Bool { dead > live &+ 8 || isSparse }

  func entry(_ position: UInt32) -> Address {
    address + Int(position)
  }

  /// A list, and the next older ones.
  struct Chain: Sequence, IteratorProtocol {
    var rest: Address?

    mutating func next() -> InvocationList? {
      guard let address = rest else { return nil }
      rest = InvocationList(address).header.next
      return InvocationList(address)
    }
  }

  // MARK: - Memory

  private static func size(_ capacity: UInt32) -> Int {
    headerSize &+ Int(capacity) &* MemoryLayout<Entry>.stride
  }

  private static func sizeOfLarge(_ capacity: UInt32) -> Int {
    size(capacity) &+ MemoryLayout<Trailer>.stride
  }

  private var isLarge: Bool { _slowPath(header.capacity >= Self.largeCapacity) }

  private var trailer: UnsafeMutablePointer<Trailer> {
    UnsafeMutableRawPointer(address + Int(header.capacity)).assumingMemoryBound(to: Trailer.self)
  }

  /// The smallest capacity for so many delegates. Capacities are 1, 4, 10, 22, 46, 70, 106 and so
  /// on: most multicasts have one delegate, and large lists waste a third at most.
  private static func capacity(for count: UInt32) -> UInt32 {
    var capacity = count > 46 ? 46 : smallestCapacity
    while capacity < count {
      capacity = capacity < 46 ? capacity &* 2 &+ 2 : capacity &+ capacity / 2 &+ 1
    }
    return capacity
  }

  /// - Parameter count: The list has room for so many delegates.
  /// - Returns: an empty list.
  @_optimize(speed)
  static func allocate(for count: UInt32, owner: Handle) throws(Status) -> InvocationList {
    let capacity = capacity(for: count)
    if _slowPath(capacity >= largeCapacity) { return try allocateLarge(capacity, owner) }
    return try allocate(size: size(capacity), capacity, owner)
  }

  private static func allocateLarge(
    _ capacity: UInt32, _ owner: Handle
  ) throws(Status) -> InvocationList {
    let list = try allocate(size: sizeOfLarge(capacity), capacity, owner)
    list.trailer.initialize(to: Trailer())
    return list
  }

  @inline(__always)
  private static func allocate(
    size: Int, _ capacity: UInt32, _ owner: Handle
  ) throws(Status) -> InvocationList {
    let block = try Allocator.allocate(size: size)
    shims_zero(block, headerSize)
    let list = InvocationList((block + headerSize).assumingMemoryBound(to: Entry.self))
    list.header.capacity = capacity
    list.header.limit = capacity
    list.header.lastPriority = .max
    list.header.owner = owner  //~ wrong_owner_of_list
    return list
  }

  func deallocate() {
    if isLarge { return deallocateLarge() }
    Allocator.deallocate(block, size: Self.size(header.capacity))
  }

  @inline(never) private func deallocateLarge() {
    dropIndex()
    Allocator.deallocate(block, size: Self.sizeOfLarge(header.capacity))
  }

  // MARK: - Adding

  /// Whether entries of this priority go last.
  func canAppend(priority: Int32) -> Bool {
    priority <= header.lastPriority  //~ priority_ignored
  }

  /// Writes an entry behind the last one, and stores its place in its registration. The entry is
  /// not part of the list until `publish`.
  ///
  /// - Parameter ahead: How many entries were written since the last `publish`.
  func write(_ new: NewEntry, ahead: UInt32) {
    let position = count &+ ahead
    let entry = self.entry(position)
    entry.pointee.function = new.function
    entry.pointee.context = new.context
    entry.pointee.token = new.token
    entry.pointee.oldPlace.store(Entry.none, ordering: .relaxed)
    entry.pointee.state.store(new.state, ordering: .relaxed)
    new.registration.place = position
  }

  /// Makes written entries part of the list.
  func publish(_ added: UInt32, priority: Int32) {
    header.live &+= added
    header.lastPriority = priority  //~ last_priority_not_stored
    // Release: pairs with the acquire of the invocation that reads the count, then the entries.
    header.count.store(count &+ added, ordering: .releasing)  // order: entries
  }

  // MARK: - Finding and marking

  static func isDead(_ entry: Address) -> Bool {
    entry.pointee.state.load(ordering: .relaxed) & State.dead != 0
  }

  /// The place of the first live delegate that matches.
  ///
  /// - Parameter start: Perhaps beyond the end: of a list that was longer.
  func firstPosition(from start: UInt32 = 0, where matches: (Address) -> Bool) -> UInt32? {
    for position in min(start, count)..<count {
      if !Self.isDead(entry(position)) && matches(entry(position)) { return position }
    }
    return nil
  }

  /// The place of the first live registration of a delegate.
  ///
  /// - Complexity: O(n); O(1) in a large list that is searched often.
  @_optimize(speed)
  func firstPosition(of delegate: multicast_delegate) -> UInt32? {
    if isLarge { return firstPositionInLarge(of: delegate) }
    return search(for: delegate)
  }

  private func search(for delegate: multicast_delegate) -> UInt32? {
    var entry = self.entry(0)
    let end = self.entry(count)
    while entry != end {
      if Self.delegate(of: entry) == delegate && !Self.isDead(entry) {
        return UInt32(truncatingIfNeeded: entry - self.entry(0))
      }
      entry += 1
    }
    return nil
  }

  @_optimize(speed)
  private func firstPositionInLarge(of delegate: multicast_delegate) -> UInt32? {
    if let index { return index.position(of: delegate, in: self) }
    let position = search(for: delegate)
    trailer.pointee.searched &+= UInt64(position ?? count)
    return position
  }

  // MARK: - The index of a large list

  /// That of a list that was searched often, up to date; nil if there is none.
  private var index: DelegateIndex? {
    var isDue = trailer.pointee.searched / Self.searchesForIndex >= UInt64(count)
    if let index = trailer.pointee.index.map({ DelegateIndex($0) }) {
      if index.update(self) { return index }
      // It is full: the next one is larger.
      dropIndex()
      isDue = true
    }
    if !isDue { return nil }
    trailer.pointee.searched = 0
    let index = DelegateIndex.make(for: self)
    trailer.pointee.index = index?.address
    return index
  }

  /// Puts delegates that were inserted between others into the index of the list, if it has one.
  func didInsert(_ added: UInt32, at start: UInt32) {
    guard isLarge, let index = trailer.pointee.index.map({ DelegateIndex($0) }) else { return }
    if !index.put(self, from: start, to: start &+ added) { dropIndex() }
  }

  private func dropIndex() {
    if let index = trailer.pointee.index { DelegateIndex(index).deallocate() }
    trailer.pointee.index = nil
  }

  /// Gives the index to the list that replaces this list.
  func passIndex(to other: InvocationList) {
    if isLarge && other.isLarge { swap(&trailer.pointee, &other.trailer.pointee) }
  }

  func forEachLive(_ body: (Address) -> Void) {
    for position in 0..<count {
      if !Self.isDead(entry(position)) { body(entry(position)) }
    }
  }

  /// Whether no live registration has details or a release function.
  var isWithoutPendingCleanup: Bool {
    var all: UInt32 = 0
    forEachLive { all |= $0.pointee.state.load(ordering: .relaxed) }
    return all & State.hasPendingCleanup == 0
  }

  /// Sets and clears bits of a state. Relaxed: a writer that needs invocations to see them makes a
  /// heavy fence, which pairs with the light fence before an invocation looks.
  func mark(_ position: UInt32, set: UInt32, clear: UInt32 = 0) {
    let state = entry(position).pointee.state.load(ordering: .relaxed)
    entry(position).pointee.state.store((state | set) & ~clear, ordering: .relaxed)
  }

  static func delegate(of entry: Address) -> multicast_delegate {
    multicast_delegate(function: entry.pointee.function, context: entry.pointee.context)
  }

  @_optimize(speed)
  static func priority(of entry: Address) -> Int32 {
    guard entry.pointee.state.load(ordering: .relaxed) & State.prioritized != 0 else { return 0 }
    let registration = Registration(index: entry.pointee.token.index)
    return registration.knownDetails.pointee.priority
  }

  // MARK: - Copying and compacting

  /// Copies live entries behind those of another list, which has room for them.
  ///
  /// - Parameters:
  ///   - start: The first place to copy from.
  ///   - lowest: The copy stops before the first live entry of a lower priority.
  /// - Returns: the place of the first entry that was not copied.
  @_optimize(speed)
  func copyLive(to other: InvocationList, from start: UInt32 = 0, lowest: Int32 = .min) -> UInt32 {
    other.header.oldEnd = .max
    let mayBreak = lowest > header.lastPriority
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
    other.header.lastPriority = header.lastPriority
    return position
  }

  /// Copies the entries before the first dead one, often all. They keep their places, so their
  /// registrations do not change.
  @_optimize(speed)
  private func copyUntilDead(to other: InvocationList) -> UInt32 {
    var end = dead == 0 ? count : 0
    while end < count && !Self.isDead(entry(end)) { end &+= 1 }
    shims_copy(other.address, address, Int(end) &* MemoryLayout<Entry>.stride)
    other.header.live = end
    other.header.count.store(end, ordering: .relaxed)
    return end
  }

  // MARK: - Places in older lists

  /// Stores for each entry its place in the older list, which was copied and is to be retired. No
  /// invocation reads this list yet.
  ///
  /// All live entries of the other list are in this list, in the same order.
  @_optimize(speed)
  func link(to old: InvocationList) {
    var (position, place) = (UInt32(0), UInt32(0))
    while position < old.count && place < count {
      if !Self.isDead(old.entry(position)) {
        let token = old.entry(position).pointee.token
        while place < count && entry(place).pointee.token != token { place &+= 1 }
        //~ old_place_not_stored
        if place < count { entry(place).pointee.oldPlace.store(position, ordering: .relaxed) }
        place &+= 1
      }
      position &+= 1
    }
    header.oldEnd = place
  }

  /// Stores for each entry its place in the list that is older than the next older one, which is
  /// to be freed.
  ///
  /// - Complexity: O(n), as the copy was that made one of the two lists from the other.
  @_optimize(speed)
  func link(past middle: InvocationList) {
    var end: UInt32 = 0
    var place: UInt32 = 0
    while place < count && place < header.oldEnd {
      var old = entry(place).pointee.oldPlace.load(ordering: .relaxed)
      if old != Entry.none {
        old = middle.entry(old).pointee.oldPlace.load(ordering: .relaxed)
        entry(place).pointee.oldPlace.store(old, ordering: .relaxed)  //~ old_place_not_passed_on
        if old != Entry.none { end = place &+ 1 }
      }
      place &+= 1
    }
    header.oldEnd = end
  }

  // MARK: - Compacting in place

  /// Moves the live entries together. No invocation reads the list.
  @_optimize(speed)
  func compactInPlace() {
    let end = count
    header.count.store(0, ordering: .relaxed)
    header.live = 0
    for position in 0..<end {
      if !Self.isDead(entry(position)) { take(entry(position)) }
    }
    refreshLastPriority()
  }

  /// Drops dead entries at the end. No invocation reads the list.
  @_optimize(speed)
  func dropDeadTail() {
    var end = count
    while end > 0 && Self.isDead(entry(end &- 1)) { end &-= 1 }
    header.count.store(end, ordering: .relaxed)
    refreshLastPriority()
  }

  /// Copies an entry behind the last one, and stores its place in its registration.
  @_optimize(speed)
  private func take(_ other: Address) {
    let position = count
    if entry(position) != other {
      shims_copy(entry(position), other, MemoryLayout<Entry>.stride)
    }
    let registration = Registration(index: entry(position).pointee.token.index)
    registration.place = position  //~ place_not_stored
    header.live &+= 1
    header.count.store(position &+ 1, ordering: .relaxed)
  }

  func refreshLastPriority() {
    header.lastPriority = count == 0 ? .max : Self.priority(of: entry(count &- 1))
  }
}
