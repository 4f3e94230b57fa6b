import MulticastHeader
import MulticastShims
import Synchronization

/// The delegates of a multicast in the order of invocation. The list is one block of memory, which
/// consists of a header and entries of 16 bytes each.
///
/// Invocations read the list without a lock while one writer, which holds the stripe's lock,
/// appends to it. The writer stores each entry once, before it increases the count to include the
/// entry. The registration's slot, not the entry, records whether the registration is live. A list
/// that is too small or contains too many dead entries is replaced with a new list.
struct InvocationList {
  struct Header: ~Copyable {
    // The count is not the first field, for the same reason as `id` in `SlotHeader`.
    var capacity: UInt32
    /// The number of entries that invocations may read.
    let count: Atomic<UInt32>
    /// The number of live entries.
    var live: UInt32
    /// The priority of the last entry. Delegates with a higher priority cannot be appended.
    var lastPriority: Int32
    /// While the count is below this limit, an add may append without further checks. The limit is
    /// the capacity, or less if a watch wants a listener warning before the list is full.
    var limit: UInt32
    /// The handle of the list's multicast. The slot may be reused for another multicast before this
    /// list is freed.
    var owner: Handle
    /// In a retired list, this is twice the list's stamp, plus 1 if a heavy fence is needed. In the
    /// current list, the low 32 bits are `warningCount`, and the high 32 bits are `warningWatch`.
    private var retirement: UInt64
    var next: Address?

    /// Whether every invocation that may be reading this retired list has a visible frame.
    ///
    /// A heavy fence that begins after the retirement makes these frames visible. No heavy fence is
    /// needed if the thread that retired the list was the single invoker, or if invocations execute
    /// full fences.
    var areReadersVisible: Bool {
      retirement & 1 == 0 || Fence.Stamp(rawValue: retirement >> 1).isFenced
    }

    /// In the current list, this is the number of live delegates at which a watch is notified next,
    /// or 0 if the number is not known. A known number is higher than `limit`.
    var warningCount: UInt32 { UInt32(truncatingIfNeeded: retirement) }
    /// The number of the watch to notify. The watch may have been replaced since.
    var warningWatch: UInt32 { UInt32(truncatingIfNeeded: retirement >> 32) }

    mutating func setWarning(_ count: UInt32, of watch: UInt32) {
      retirement = UInt64(watch) << 32 | UInt64(count)
      limit = min(capacity, count &- 1)
    }

    /// Called after a new list has replaced this list.
    mutating func retire(needsFence: Bool) {
      retirement = Fence.Stamp.now.rawValue << 1 | (needsFence ? 1 : 0)
    }
  }

  struct Entry {
    let slot: UnsafeMutablePointer<Registration.Storage>
    let token: Token

    @inline(__always) var id: Handle { slot.pointee.header.id.load(ordering: .relaxed) }
    @inline(__always) var isPlain: Bool { id == token }
    var isLive: Bool { id.isLive(as: token) }
  }

  /// Data that follows the entries of a large list. Only writers use it.
  private struct Trailer {
    var index: UnsafeMutableRawPointer? = nil
    /// The number of entries in the index, counted from the start of the list.
    var indexed: UInt32 = 0
    /// The number of entries that searches for a delegate have compared without an index.
    var searched: UInt64 = 0
  }

  /// The number of watches that want listener warnings. It changes under the watches' lock.
  static let warningWatches = Atomic<UInt64>(0)

  /// Relaxed is enough: an add that does not see a new watch holds the stripe's lock before
  /// `Watch.update` takes it, so `Watch.update` finds the list that the add has changed.
  static var areWarningsSet: Bool { warningWatches.load(ordering: .relaxed) != 0 }

  private static let smallestCapacity: UInt32 = 1
  /// Only lists of at least this capacity have a trailer with an index, because searching a smaller
  /// list takes at most a microsecond.
  private static let largeCapacity: UInt32 = 1000
  /// Adding one entry to an index takes as long as comparing this many entries.
  private static let searchesForIndex: UInt64 = 64
  private static let headerSize = 48

  /// The address of the first entry, directly after the header. The library uses it as the address
  /// of the list, because invocations read many entries but little of the header.
  typealias Address = UnsafeMutablePointer<Entry>

  let address: Address

  init(_ address: Address) { self.address = address }

  private var block: UnsafeMutablePointer<Header> {
    (UnsafeMutableRawPointer(address) - Self.headerSize).assumingMemoryBound(to: Header.self)
  }

  /// The header, accessed in place without a copy.
  var header: Header {
    unsafeAddress { UnsafePointer(block) }
    nonmutating unsafeMutableAddress { block }
  }

  /// The number of entries, including dead ones. Only writers use this property.
  var count: UInt32 { header.count.load(ordering: .relaxed) }
  var live: UInt32 { header.live }
  var dead: UInt32 { count &- live }
  var room: UInt32 { header.capacity &- count }
  /// Whether another entry can be appended without replacing the list and without notifying a
  /// watch.
  var hasRoomAtOnce: Bool { count < header.limit }  //~ limit_ignored

  /// Whether a smaller list would save enough memory to be worth a copy.
  var isSparse: Bool { header.capacity > 30 && live < header.capacity / 8 }
  var needsCompaction: Bool { dead > live &+ 8 || isSparse }

  func entry(_ position: UInt32) -> Entry { address[Int(position)] }

  /// A list and the older lists linked to it.
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
      &+ (capacity >= largeCapacity ? MemoryLayout<Trailer>.stride : 0)
  }

  private var isLarge: Bool { _slowPath(header.capacity >= Self.largeCapacity) }

  private var trailer: UnsafeMutablePointer<Trailer> {
    UnsafeMutableRawPointer(address + Int(header.capacity)).assumingMemoryBound(to: Trailer.self)
  }

  /// Returns the smallest capacity that is sufficient for this many delegates. The capacities are
  /// 1, 4, 10, 22, 46, 70, 106 and so on, because most multicasts have one delegate, and large
  /// lists should waste at most a third of their memory.
  private static func capacity(for count: UInt32) -> UInt32 {
    var capacity = count > 46 ? 46 : smallestCapacity
    while capacity < count {
      capacity = capacity < 46 ? capacity &* 2 &+ 2 : capacity &+ capacity / 2 &+ 1
    }
    return capacity
  }

  /// - Returns: an empty list with room for `count` delegates.
  @_optimize(speed)
  static func allocate(for count: UInt32, owner: Handle) throws(Status) -> InvocationList {
    let capacity = capacity(for: count)
    let block = try Allocator.allocate(size: size(capacity))
    shims_zero(block, headerSize)
    let list = InvocationList((block + headerSize).assumingMemoryBound(to: Entry.self))
    list.header.capacity = capacity
    list.header.limit = capacity
    list.header.lastPriority = .max
    list.header.owner = owner  //~ wrong_owner_of_list
    if list.isLarge { list.trailer.initialize(to: Trailer()) }
    return list
  }

  func deallocate() {
    if isLarge { dropIndex() }
    Allocator.deallocate(block, size: Self.size(header.capacity))
  }

  // MARK: - Adding

  func canAppend(priority: Int32) -> Bool {
    priority <= header.lastPriority  //~ priority_ignored
  }

  /// Writes an entry after the last entry. The entry does not become part of the list until
  /// `publish` is called.
  ///
  /// - Parameter ahead: The number of entries written since the last `publish`.
  func write(_ registration: Registration, _ token: Token, ahead: UInt32) {
    address[Int(count &+ ahead)] = Entry(slot: registration.storage, token: token)
  }

  /// Makes the entries written since the last `publish` part of the list.
  func publish(_ added: UInt32, priority: Int32) {
    header.live &+= added
    header.lastPriority = priority  //~ last_priority_not_stored
    // Release: pairs with an invocation's acquire load of the count, which precedes its reads of
    // the entries.
    header.count.store(count &+ added, ordering: .releasing)  // order: entries
  }

  // MARK: - Finding

  /// The position of the first live entry at or after `start`, which may come from an earlier,
  /// longer list, and thus be beyond the end.
  func firstLive(from start: UInt32) -> UInt32? {
    for position in min(start, count)..<count where entry(position).isLive { return position }
    return nil
  }

  /// The first live registration of a delegate.
  ///
  /// - Complexity: O(n); O(1) in a large list that is searched often.
  @_optimize(speed)
  func first(_ delegate: multicast_delegate) -> Registration? {
    if isLarge { return firstInLarge(delegate) }
    return search(for: delegate).map { Registration($0.pointee) }
  }

  private func search(for delegate: multicast_delegate) -> Address? {
    var entry = address
    let end = address + Int(count)
    while entry != end {
      if Registration(entry.pointee).isOf(delegate) && entry.pointee.isLive { return entry }
      entry += 1
    }
    return nil
  }

  private func firstInLarge(_ delegate: multicast_delegate) -> Registration? {
    if let index { return index.first(delegate) }
    let found = search(for: delegate)
    trailer.pointee.searched &+= UInt64((found ?? address + Int(count)) - address)
    return found.map { Registration($0.pointee) }
  }

  func forEachLive(_ body: (Registration) -> Void) {
    for position in 0..<count where entry(position).isLive { body(Registration(entry(position))) }
  }

  // MARK: - The index of a large list

  /// The updated index of the list; nil if there is none. If the list is searched often and has no
  /// index, builds one.
  private var index: DelegateIndex? {
    var isDue = trailer.pointee.searched / Self.searchesForIndex >= UInt64(count)
    if trailer.pointee.index != nil {
      if updateIndex() { return trailer.pointee.index.map { DelegateIndex($0) } }
      isDue = true  // it was full; the next index is larger
    }
    if !isDue { return nil }
    trailer.pointee.searched = 0
    trailer.pointee.index = DelegateIndex.make(for: self)?.address
    trailer.pointee.indexed = count
    return trailer.pointee.index.map { DelegateIndex($0) }
  }

  /// Adds to the index the entries that have been appended since the last update. If they do not
  /// fit, drops the index. Returns whether there is an index.
  private func updateIndex() -> Bool {
    guard let address = trailer.pointee.index else { return false }
    if DelegateIndex(address).put(self, from: trailer.pointee.indexed, to: count) {
      trailer.pointee.indexed = count
      return true
    }
    dropIndex()
    return false
  }

  /// Called after delegates have been inserted between other delegates.
  func didInsert(_ added: UInt32, at start: UInt32) {
    guard isLarge, let index = trailer.pointee.index.map({ DelegateIndex($0) }) else { return }
    if !index.put(self, from: start, to: start &+ added) { dropIndex() }
  }

  private func dropIndex() {
    if let index = trailer.pointee.index { DelegateIndex(index).deallocate() }
    trailer.pointee.index = nil
  }

  /// Moves the index, and the number of delegates at which the next warning is due, to the list
  /// that replaces this list. The new list already contains the live entries.
  func passOn(to other: InvocationList) {
    //~ listener_warning_not_passed_on
    other.header.setWarning(header.warningCount, of: header.warningWatch)
    if isLarge { passIndex(to: other) }
  }

  private func passIndex(to other: InvocationList) {
    guard other.isLarge && updateIndex() else { return }
    swap(&trailer.pointee, &other.trailer.pointee)
    other.trailer.pointee.indexed = other.count
  }

  // MARK: - Copying and compacting

  /// Appends the live entries from `start` on to another list, which has room for them. Stops
  /// before the first live entry with a lower priority than `lowest`.
  ///
  /// - Returns: the position of the first entry that was not copied.
  @_optimize(speed)
  func copyLive(to other: InvocationList, from start: UInt32 = 0, lowest: Int32 = .min) -> UInt32 {
    let mayBreak = lowest > header.lastPriority
    var (position, end) = (start, other.count)
    if dead == 0 && !mayBreak {
      let rest = count &- start
      shims_copy(
        other.address + Int(end), address + Int(start),
        Int(rest) &* MemoryLayout<Entry>.stride)
      (position, end) = (count, end &+ rest)
    }
    while position < count {
      let entry = self.entry(position)
      if entry.isLive {
        if mayBreak && Registration(entry).priority < lowest { break }
        other.address[Int(end)] = entry
        end &+= 1
      }
      position &+= 1
    }
    other.header.live = end
    other.header.count.store(end, ordering: .relaxed)
    other.header.lastPriority = header.lastPriority
    return position
  }

  /// Returns a smaller list of the live entries, or nil if memory is exhausted.
  func compacted() -> InvocationList? {
    guard let smaller = try? InvocationList.allocate(for: live &* 2, owner: header.owner) else {
      return nil
    }
    _ = copyLive(to: smaller)
    smaller.refreshLastPriority()
    return smaller
  }

  /// Moves the live entries to the front. Requires that no invocation is reading the list.
  @_optimize(speed)
  func compactInPlace() {
    if isLarge { _ = updateIndex() }
    var kept: UInt32 = 0
    for position in 0..<count where entry(position).isLive {
      address[Int(kept)] = entry(position)
      kept &+= 1
    }
    if isLarge { trailer.pointee.indexed = kept }
    header.live = kept
    header.count.store(kept, ordering: .relaxed)
    refreshLastPriority()
  }

  /// Drops the dead entries at the end. Requires that no invocation is reading the list.
  @_optimize(speed)
  func dropDeadTail() {
    var end = count
    while end > 0 && !entry(end &- 1).isLive { end &-= 1 }
    if isLarge { trailer.pointee.indexed = min(trailer.pointee.indexed, end) }
    header.count.store(end, ordering: .relaxed)
    refreshLastPriority()
  }

  func refreshLastPriority() {
    header.lastPriority = count == 0 ? .max : Registration(entry(count &- 1)).priority
  }
}

extension Registration {
  /// The slot of a list entry. The slot may since have been reused for another registration.
  @inline(__always) init(_ entry: InvocationList.Entry) {
    self.init(index: entry.token.index, at: entry.slot)
  }
}

#if MULTICAST_INTERNAL_CHECKS
  /// The caller holds the stripe's lock.
  extension InvocationList {
    func checkCurrent(_ multicast: Multicast, _ check: Check) {
      check.that(header.owner == multicast.handle, "a list belongs to its multicast")
      check.that(count <= header.capacity, "there is room for all entries", count, header.capacity)
      check.that(live <= count, "live entries are entries", live, count)
      check.that(header.next == nil, "the current list is not retired")
      check.that(
        header.limit == min(header.capacity, header.warningCount &- 1),
        "the limit is below the count of the next warning", header.limit, header.warningCount)
      if Check.reach() < count { return checkNewest(multicast, check) }

      var alive: UInt32 = 0
      var highest = Int32.max
      for position in 0..<count {
        if entry(position).isLive {
          alive &+= 1
          checkLive(position, multicast, check)
          let priority = Registration(entry(position)).priority
          check.that(priority <= highest, "priorities do not rise", position)
          highest = priority
        }
      }
      check.that(alive == live, "live counts the entries that are not dead", live, alive)
      if count > 0 && entry(count &- 1).isLive {
        check.that(header.lastPriority == highest, "the last priority is that of the last entry")
      }
    }

    private func checkNewest(_ multicast: Multicast, _ check: Check) {
      for position in count &- 4..<count {
        if entry(position).isLive { checkLive(position, multicast, check) }
      }
    }

    private func checkLive(_ position: UInt32, _ multicast: Multicast, _ check: Check) {
      let registration = Registration(entry(position))
      check.that(
        registration.storage == Registration(index: registration.index).storage,
        "an entry names the slot of its token", position)
      check.that(
        registration.owner == multicast.handle.index, "a registration knows its multicast",
        registration.owner, multicast.handle.index)
      let isPlain = !registration.has(Registration.Flags.special | Registration.Flags.paused)
      check.that(
        isPlain == entry(position).isPlain, "the kind shows whether a registration is plain",
        position)
      let details = registration.details
      let needsSpecial =
        registration.has(Registration.Flags.once | Registration.Flags.shared)
        || details.map { $0.pointee.lock != nil || $0.pointee.queue != nil } ?? false
      check.that(
        !needsSpecial || registration.has(Registration.Flags.special),
        "a delegate that is not called plainly is special", position)
      check.that(
        details.map { $0.pointee.context == registration.delegate.context } ?? true,
        "details are of the same delegate", position)
    }
  }
#endif
