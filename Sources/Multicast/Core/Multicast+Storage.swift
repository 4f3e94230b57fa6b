import MulticastShims
import Synchronization

/// A multicast's slot, and the basics that all of its operations share.
///
/// Slots are 64 bytes and are never unmapped. What another thread may still be doing with an
/// earlier inhabitant (its retired lists) survives the reuse of the slot.
struct Multicast {
  struct Storage: ~Copyable {
    // What invocations read.

    var header: SlotHeader
    /// The list that new invocations use; nil while nothing was ever added.
    let list: Atomic<UnsafeMutablePointer<InvocationList.Header>?>
    /// The newest ticket of the retired lists, 0 when there are none.
    let pending: Atomic<UInt64>
    /// The handle of the inhabitant, plus the number of the only thread record that ever invoked
    /// it: 0 for none yet, `everyone` once there were two.
    let invoker: Atomic<UInt64>

    // What writers keep, under the stripe's lock.

    /// Lists that were replaced and may still be read, the newest first.
    var retired: UnsafeMutablePointer<InvocationList.Header>?
  }

  static let everyone: UInt64 = Handle.oneGeneration / 2

  @inline(__always) static var directory: SlabDirectory {
    SlabDirectory(shims_get_multicast_directory().unsafelyUnwrapped, stride: 64)
  }

  let handle: UInt64
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whoever lives there: `isCurrent` tells.
  @inline(__always) init?(slotOf handle: UInt64) {
    guard Handle.kind(of: handle) == Handle.Kind.multicast,
      let slot = Self.directory.slot(Handle.index(of: handle))
    else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  static func find(_ handle: UInt64) throws(Status) -> Multicast {
    guard let multicast = Multicast(slotOf: handle), multicast.isCurrent else {
      throw .invalidHandle
    }
    return multicast
  }

  /// Whoever lives in the slot that a frame names.
  init(address: UInt) {
    storage = UnsafeMutablePointer(bitPattern: address).unsafelyUnwrapped
    handle = storage.pointee.header.id.load(ordering: .relaxed)
  }

  /// Whoever lives in a slot that was given out.
  init(slot index: UInt32) {
    let slot = Self.directory.slot(index).unsafelyUnwrapped
    storage = slot.assumingMemoryBound(to: Storage.self)
    handle = storage.pointee.header.id.load(ordering: .relaxed)
  }

  var isCurrent: Bool { storage.pointee.header.id.load(ordering: .acquiring) == handle }
  var address: UInt { UInt(bitPattern: storage) }
  var stripe: Stripe { Stripe(of: Handle.index(of: handle)) }

  /// Runs a body under the stripe's lock, if the multicast still exists.
  @inline(__always)
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  // MARK: - Under the stripe's lock

  var list: InvocationList? {
    guard let header = storage.pointee.list.load(ordering: .relaxed) else { return nil }
    return InvocationList(header)
  }

  /// Release: pairs with the acquire of the invocation that reads the list.
  func setList(_ list: InvocationList?) {
    storage.pointee.list.store(list?.header, ordering: .releasing)
  }

  /// Whether nobody but this thread has invoked this multicast since it was created. Another
  /// that begins now comes to `admit` first, so to the lock that the caller holds: what the caller
  /// changes needs no fence.
  func isAlone(_ thread: ThreadRecord?) -> Bool {
    let number = storage.pointee.invoker.load(ordering: .relaxed) &- handle
    return number == 0 || number == thread.map { UInt64($0.storage.pointee.number) }
  }

  /// Whether no invocation of it runs: what is replaced may be freed, and what is dead forgotten.
  func isQuiet(_ thread: ThreadRecord?) -> Bool {
    isAlone(thread) && !(thread?.isInvoking(address) ?? false)
  }

  /// Puts another list in the place of the current one.
  func replaceList(by list: InvocationList?, _ cleanup: inout Cleanup) {
    guard let old = self.list else { return setList(list) }
    setList(list)
    if isQuiet(cleanup.thread) { return old.deallocate() }

    let ticket = Ticket.draw()  // after the list was replaced: who reads it sees the new one
    old.header.pointee.ticket = ticket
    old.header.pointee.needsFence = !isAlone(cleanup.thread)
    old.header.pointee.next = storage.pointee.retired
    storage.pointee.retired = old.header
    // Relaxed: the heavy fence comes between this store and the first look at the frames, and pairs
    // with the light one before an invocation that leaves reads it.
    storage.pointee.pending.store(ticket, ordering: .relaxed)
    if old.header.pointee.needsFence { cleanup.hasRetired = true } else { reap() }
  }

  @inline(__always)
  func forEachRetired(_ body: (InvocationList) -> Void) {
    var next = storage.pointee.retired
    while let header = next {
      next = header.pointee.next
      if header.pointee.owner == handle { body(InvocationList(header)) }
    }
  }

  /// Changes the state of a delegate in every list that an invocation may be reading.
  func mark(_ position: UInt32, of list: InvocationList, set: UInt32, clear: UInt32 = 0) {
    let token = list.entry(position).pointee.token
    list.mark(position, set: set, clear: clear)
    forEachRetired { retired in
      let place = retired.position(of: token, at: position, in: list)
      if let place { retired.mark(place, set: set, clear: clear) }
    }
  }

  /// Frees the retired lists that no invocation can be reading.
  func reap() {
    var next = storage.pointee.retired
    var kept: UnsafeMutablePointer<InvocationList.Header>? = nil
    var last = kept
    while let header = next {
      next = header.pointee.next
      if isFree(header) {
        InvocationList(header).deallocate()
        continue
      }
      header.pointee.next = nil
      if let last { last.pointee.next = header } else { kept = header }
      last = header
    }
    storage.pointee.retired = kept
    if kept == nil { storage.pointee.pending.store(0, ordering: .relaxed) }
  }

  private func isFree(_ retired: UnsafeMutablePointer<InvocationList.Header>) -> Bool {
    let (list, ticket) = (UInt(bitPattern: retired), retired.pointee.ticket)
    if retired.pointee.needsFence && !Ticket.isFenced(ticket) { return false }
    return !ThreadRegistry.all.contains {
      $0.isReading(list, of: address, retiredWith: ticket)
    }
  }
}
