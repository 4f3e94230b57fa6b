import MulticastHeader
import MulticastShims
import Synchronization

/// A multicast's slot, and the basic operations on it.
///
/// A slot is 64 bytes long and is never unmapped. When a slot is reused, its previous multicast's
/// retired lists stay with the slot until no thread is reading them.
struct Multicast {
  struct Storage: ~Copyable {
    // Fields that invocations read.

    var header: SlotHeader
    /// The list that new invocations use; nil until a delegate is added.
    let list: Atomic<InvocationList.Address?>
    /// The invoker word: the handle of the multicast plus a number and the bits that are defined
    /// below. The number is 0 if no thread has invoked the multicast, the number of the thread's
    /// record if only one thread has, and `multipleInvokers` if several have. An invocation takes
    /// the fast path if the word is open, or if it contains the number of the invocation's thread
    /// and no special bits. The word may still belong to the slot's previous multicast.
    let invoker: Atomic<UInt64>

    // Fields for writers, which hold the stripe's lock.

    /// Replaced lists that invocations may still be reading, newest first. The field is atomic,
    /// because `Trim` reads it without the lock to check whether there are any.
    let firstRetired: Atomic<InvocationList.Address?>
    var bias: Bias
  }

  /// If these bits are set, any thread may invoke the multicast without further checks. The bits
  /// are computed from the other bits (see `completed`).
  ///
  /// The `open` bits are all the bits above the number and the special bits. So an open word is
  /// less than its handle, by at most half a generation. The words of all other multicasts in this
  /// slot are farther away from the handle, in either direction. (This includes the word of a
  /// transport's multicast, because its kind has a lower number.) Therefore one comparison
  /// recognizes an open word, and accepts it only for its own handle. The distance matters if a
  /// caller guesses a handle before the slot is reused, because the handle may have become valid by
  /// the time it is compared with the slot.
  static var open: UInt64 { 0 &- Handle.oneGeneration / 2 }
  /// Invocations execute full fences (see `Bias`). This bit is set only if the multicast has an
  /// invoker.
  static var fenced: UInt64 { Handle.oneGeneration / 4 }
  /// A watch is notified of the calls (see `Watch`).
  static var watched: UInt64 { Handle.oneGeneration / 8 }
  /// The `watched` bit of a multicast without a watch. The bit is set if a race detector is
  /// present, because the library then treats every multicast as watched.
  static var watchedAlways: UInt64 { RaceDetector.isPresent ? watched : 0 }
  /// The multicast was created with policies (see `Policies`).
  static var withPolicies: UInt64 { Handle.oneGeneration / 16 }
  /// The multicast was created without policies, but reports changes to its delegates (see
  /// `observe`).
  static var observed: UInt64 { Handle.oneGeneration / 32 }
  static var special: UInt64 { fenced | watched | withPolicies | observed }
  static var multipleInvokers: UInt64 { Handle.oneGeneration / 64 }

  static var pool: SlotPool { .multicasts }

  let handle: Handle
  let storage: UnsafeMutablePointer<Storage>

  @inline(__always) init(_ handle: Handle, at storage: UnsafeMutablePointer<Storage>) {
    self.handle = handle
    self.storage = storage
  }

  /// The slot at the index of a handle. The slot may have been reused since (see `isCurrent`).
  @inline(__always) init?(slotOf handle: Handle) {
    self.init(slotOf: handle, .multicast)
  }

  @inline(__always) init?(slotOf handle: Handle, _ kind: Handle.Kind) {
    guard let slot = Self.pool.slot(of: handle, kind) else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  static func find(_ handle: Handle) throws(Status) -> Multicast {
    guard let multicast = Multicast(slotOf: handle), multicast.isCurrent else {
      throw .invalidHandle
    }
    return multicast
  }

  /// The multicast that now uses the slot of a frame's target. The handle's generation is zero if
  /// the slot's page has been returned to the system.
  init(_ target: Target) {
    storage = target.slot.assumingMemoryBound(to: Storage.self)
    handle = storage.pointee.header.id.load(ordering: .relaxed)
  }

  /// The multicast that now uses an allocated slot.
  init(slot index: UInt32) {
    let slot = Self.pool.directory.slot(index).unsafelyUnwrapped
    storage = slot.assumingMemoryBound(to: Storage.self)
    // Set the index, which determines the stripe, even if the slot reads as zero because its page
    // has been returned to the system.
    handle = Handle(storage.pointee.header.id.load(ordering: .relaxed).rawValue | UInt64(index))
  }

  /// The fields of the slot, accessed in place without a copy.
  var fields: Storage {
    unsafeAddress { UnsafePointer(storage) }
    nonmutating unsafeMutableAddress { storage }
  }

  var isCurrent: Bool { fields.header.id.load(ordering: .acquiring) == handle }  // order: occupant
  var stripe: Stripe { Stripe(of: handle.index) }

  var target: Target { .invocation(storage) }

  /// Executes `body` under the stripe's lock, if the multicast still exists.
  @inline(never)
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  // MARK: - Invokers, under the stripe's lock

  /// Whether no thread except this one has invoked the multicast since its creation.
  ///
  /// The caller holds the stripe's lock. Another thread that begins its first invocation now finds
  /// the lock held, and waits for it before it continues, so the caller's changes need no fence.
  /// For an observed multicast, the result is false: such a multicast is open as soon as it has an
  /// invoker, and the fast paths for changes do not report them.
  @inline(__always)
  func hasSingleInvoker(
    _ thread: ThreadRecord?, ignoring ignored: UInt64 = fenced | watched | withPolicies
  ) -> Bool {
    let number = invokerNumber & ~ignored  //~ observed_by_fast_path
    return number == 0 || number == thread.map { UInt64($0.number) }  //~ always_single_invoker
  }

  /// Whether no invocation of this multicast can be running, so that replaced lists may be freed
  /// immediately and dead entries may be dropped.
  func isQuiescent(_ thread: ThreadRecord?) -> Bool {
    hasSingleInvoker(thread) && !(thread?.isInside(target) ?? false)
  }

  /// Like `isQuiescent`, but false if the multicast has policies or is observed.
  ///
  /// If the multicast has no invoker, this thread's frames with the same target belong to the
  /// slot's previous multicast, so their invocations read another list.
  @inline(__always)
  func isPlainAndQuiescent(_ thread: ThreadRecord?) -> Bool {
    let ignored = Self.fenced | Self.watched
    if invokerNumber & ~ignored == 0 { return true }
    return hasSingleInvoker(thread, ignoring: ignored) && !(thread?.isInside(target) ?? false)
  }
}

extension Multicast {
  /// - Returns: the handle of an empty multicast without policies.
  @_optimize(speed)
  static func create() throws(Status) -> Handle {
    try create(.multicast) { storage, handle in initialize(storage, handle, 0) }
  }

  @inline(__always)
  static func create(
    _ kind: Handle.Kind, _ initialize: (UnsafeMutablePointer<Storage>, Handle) -> Void
  ) throws(Status) -> Handle {
    if let thread = ThreadRecord.current,
      let (index, slot) = thread.storage.pointee.vacant.take(from: pool)
    {
      return SlotPool.occupy(index, slot, kind, initialize)
    }
    return try pool.create(kind, initialize)
  }

  static func initialize(
    _ storage: UnsafeMutablePointer<Storage>, _ handle: Handle, _ special: UInt64
  ) {
    clearListenerFlag(storage)
    //~ invoker_not_reset
    storage.pointee.invoker.store(
      handle.rawValue &+ (special | watchedAlways), ordering: .relaxed)
  }
}

extension Multicast {
  func count() throws(Status) -> Int {
    try withLock { () throws(Status) in Int(list?.live ?? 0) }
  }

  func contains(_ delegate: multicast_delegate) throws(Status) -> Bool {
    try withLock { () throws(Status) in
      list?.first(delegate) != nil
    }
  }

  /// Copies delegates until `out` is full or all delegates have been copied.
  ///
  /// - Parameter capacity: The size of `out`. The caller passes a `size_t`, so a negative value
  ///   means that all delegates fit into `out`.
  /// - Returns: the number of delegates in the list.
  func list(
    into out: UnsafeMutablePointer<multicast_delegate>?, capacity: Int
  ) throws(Status) -> Int {
    try withLock { () throws(Status) in
      guard let list else { return 0 }
      var written = 0
      var position: UInt32 = 0
      while written != capacity,
        let found = list.firstLive(from: position)
      {
        out?[written] = Registration(list.entry(found)).delegate
        written &+= 1
        position = found &+ 1
      }
      return Int(list.live)
    }
  }
}

extension Multicast {
  static func setPaused(_ isPaused: Bool, _ token: Token) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let (stripe, id) = registration.lockStripe()
    defer { stripe.unlock() }
    guard id.isLive(as: token) else { return .invalidHandle }
    registration.setPaused(isPaused)
    Multicast(slot: registration.owner).checkInvariants()
    return .ok
  }
}

/// The flag whose address `multicast_listener_flag` returns. It is nonzero while an invocation may
/// have an effect. It is stored in the slot's link, which the pool uses only while the slot is
/// vacant.
///
/// The flag is written under the stripe's lock. A thread writes the flag only to change it, because
/// all invocations read its cache line. Relaxed is enough, because another thread can know that an
/// add has returned only through some synchronization, which also makes the store visible. The flag
/// does not order any other memory accesses.
extension Multicast {
  private static var hasDelegates: UInt32 { 1 }
  /// The flag stays set if an invocation has an effect even without delegates.
  private static var always: UInt32 { 2 }

  /// Clears the flag, which may contain a value left by the previous multicast or by the pool.
  ///
  /// Release: this thread may have taken the slot without a lock (see `VacantSlots.take`), and
  /// another thread may fork at any moment. If the child finds the cleared flag in the slot, it
  /// also finds that the slot has been taken.
  static func clearListenerFlag(_ storage: UnsafeMutablePointer<Storage>) {
    storage.pointee.header.link.store(0, ordering: .releasing)  // order: listener_flag
  }

  static func setListenerFlagForever(_ storage: UnsafeMutablePointer<Storage>) {
    storage.pointee.header.link.store(always, ordering: .relaxed)
  }

  @inline(__always)
  func didAdd() {
    if fields.header.link.load(ordering: .relaxed) == 0 {
      fields.header.link.store(Self.hasDelegates, ordering: .relaxed)  //~ listener_flag_not_set
    }
  }

  func didRemoveLast() {
    if fields.header.link.load(ordering: .relaxed) == Self.hasDelegates {
      fields.header.link.store(0, ordering: .relaxed)  //~ listener_flag_not_cleared
    }
  }

  /// The address of the flag, which stays readable, because slots are never unmapped.
  var listenerFlag: UnsafePointer<UInt32> {
    UnsafeRawPointer(fields.header.link.address).assumingMemoryBound(to: UInt32.self)
  }

  static var noListenerFlag: UnsafePointer<UInt32> {
    shims_get_no_listener_flag().unsafelyUnwrapped
  }

  #if MULTICAST_INTERNAL_CHECKS
    func checkListenerFlag(_ check: Check) {
      let word = fields.header.link.load(ordering: .relaxed)
      check.that(
        word == Self.always || word == ((list?.live ?? 0) > 0 ? Self.hasDelegates : 0),
        "the listener flag tells whether there are delegates", word)
    }
  #endif
}

/// Checks the invariants of the lists. The caller holds the stripe's lock.
extension Multicast: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      checkRetired(check)
      check.that(MemoryLayout<Storage>.size <= 64, "a multicast fits into its slot")
      // The slot may be vacant.
      guard isCurrent, handle.isOfMulticast else { return }
      list?.checkCurrent(self, check)
      checkListenerFlag(check)
      let invoker = invokerNumber & ~(Self.special | Self.open)
      check.that(
        invoker <= Self.multipleInvokers, "the invoker is none, one thread, or several", invoker)
      check.that(
        invoker != 0 || invokerNumber & Self.fenced == 0,
        "a multicast that is fenced has an invoker", invokerNumber)
      check.that(
        invokerNumber == Self.completed(invokerNumber), "the word says whether it is open",
        invokerNumber)
      let (since, now) = (fields.bias.unsettledSince, Fence.Stamp.now.rawValue &+ 1)
      check.that(since <= now, "the switch to fenced is not in the future", since, now)
    }

    private func checkRetired(_ check: Check) {
      let occupant = fields.header.id.load(ordering: .relaxed)
      for list in retired {
        let owner = list.header.owner
        check.that(
          owner.index == handle.index && owner.generation <= occupant.generation,
          "a retired list is of an occupant of the slot")
        check.that(list.address != self.list?.address, "the current list is not retired")
      }
    }
  #endif
}

/// The changes that one thread makes to lists.
struct ListChanges {
  let thread: ThreadRecord?

  /// The most recently retired list whose readers' frames are visible only after a heavy fence.
  fileprivate(set) var retired: InvocationList? = nil

  init(by thread: ThreadRecord?) { self.thread = thread }
}

/// The current list and the retired lists of a multicast. The caller holds the stripe's lock,
/// except in `reclaim`, which takes the lock itself.
extension Multicast {
  var list: InvocationList? { fields.list.load(ordering: .relaxed).map { InvocationList($0) } }

  /// Release: pairs with an invocation's acquire load.
  func setList(_ list: InvocationList?) {
    fields.list.store(list?.address, ordering: .releasing)  // order: contents
  }

  /// Replaces the current list, and then frees or retires it.
  @_optimize(speed)
  func replaceList(by list: InvocationList?, _ changes: inout ListChanges) {
    guard let old = self.list else { return setList(list) }
    if let list { old.passOn(to: list) }
    setList(list)  //~ retired_list_still_current
    if isQuiescent(changes.thread) { return old.deallocate() }

    // This fence is between the replacement and the stamp, so the new list is visible before any
    // heavy fence with a higher number begins. If an invocation's frame is not visible after such a
    // heavy fence, the invocation reads the new list. This fence also pairs with the full fence of
    // a fenced invocation.
    Fence.full()
    RaceDetector.happensBefore(old.address)  // acquired by the thread that frees the list
    old.header.retire(needsFence: neededFence(changes.thread) == .heavy)
    old.header.next = firstRetired
    firstRetired = old.address
    if old.header.areReadersVisible {
      reclaimLocked { $0.address == old.address }
    } else {
      changes.retired = old
    }
  }

  private(set) var firstRetired: InvocationList.Address? {
    get { fields.firstRetired.load(ordering: .relaxed) }
    nonmutating set { fields.firstRetired.store(newValue, ordering: .relaxed) }
  }

  /// Makes sure that there is room for another entry. If necessary, replaces the list with a larger
  /// list, provided that no entry is dead and no invocation can be reading the old list. Returns
  /// whether there is room now. If there is not, nothing has changed.
  func makeRoomAtOnce() throws(Status) -> Bool {
    guard let list else { return try makeFirst() }
    if list.hasRoomAtOnce { return true }  //~ room_not_checked
    return try grow(list)
  }

  @_optimize(speed)
  @inline(never) private func makeFirst() throws(Status) -> Bool {
    setList(try InvocationList.allocate(for: 1, owner: handle))
    return true
  }

  @_optimize(speed)
  private func grow(_ old: InvocationList) throws(Status) -> Bool {
    if InvocationList.areWarningsSet { return false }
    if old.dead > 0 || !old.canAppend(priority: 0) || !isQuiescent(.current) { return false }
    let larger = try InvocationList.allocate(for: old.count &+ 1, owner: handle)
    _ = old.copyLive(to: larger)
    old.passOn(to: larger)
    setList(larger)
    old.deallocate()
    return true
  }

  /// The retired lists, including those of previous multicasts in this slot.
  var retired: InvocationList.Chain { InvocationList.Chain(rest: firstRetired) }

  /// Compacts the list if necessary. If there is no memory for a smaller list, keeps the current
  /// list.
  @_optimize(speed)
  func compact(_ changes: inout ListChanges) {
    guard let list else { return }
    if list.live == 0 { didRemoveLast() }
    if isQuiescent(changes.thread) { return compactAtOnce(list) }
    if list.needsCompaction, let smaller = list.compacted() { replaceList(by: smaller, &changes) }
  }

  /// Compacts a list if necessary. Requires that no invocation is reading the list.
  func compactAtOnce(_ list: InvocationList) {
    list.dropDeadTail()
    guard list.needsCompaction else { return }
    guard list.isSparse, let smaller = list.compacted() else { return list.compactInPlace() }
    list.passOn(to: smaller)
    setList(smaller)
    list.deallocate()
  }

  // MARK: - Reclaiming

  /// Frees retired lists that no invocation can be reading. Takes the stripe's lock.
  ///
  /// This function executes no fence. If the writer that replaced a list has yet to execute its
  /// heavy fence, this function does not free that list. The writer calls this function after its
  /// fence, and each invocation that has named the list calls it when the invocation ends. The last
  /// of these calls frees the list.
  ///
  /// - Parameter only: The address of the only list to consider; nil for all lists.
  @inline(never)
  func reclaim(_ only: UInt? = nil) {
    // If the slot's page has been returned to the system, the slot has no lists. Its handle then
    // reads as zero, and does not identify the stripe that guards the slot.
    if handle.generation == 0 || only == 0 { return }
    let stripe = self.stripe
    stripe.lock()
    reclaimLocked { list in only.map { $0 == UInt(bitPattern: list.address) } ?? true }
    checkInvariants()
    stripe.unlock()
  }

  private func reclaimLocked(where matches: (InvocationList) -> Bool) {
    var last: InvocationList? = nil
    for list in retired {
      //~ list_freed_early list_never_freed
      if matches(list) && list.header.areReadersVisible && !isRead(list) {
        if let last { last.header.next = list.header.next } else { firstRetired = list.header.next }
        RaceDetector.happensAfter(list.address)
        list.deallocate()
      } else {
        last = list
      }
    }
  }

  /// Whether an invocation of this slot's multicast names a list in its frame. Frames with other
  /// targets do not count. Such a frame may contain the same address, left over from a list that
  /// has been freed. If it counted, this list might never be freed, because the frame's invocation
  /// frees no lists of this slot.
  private func isRead(_ list: InvocationList) -> Bool {
    ThreadRegistry.isRead(UInt(bitPattern: list.address), by: target)
  }
}
