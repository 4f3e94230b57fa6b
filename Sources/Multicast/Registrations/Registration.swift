import MulticastHeader
import MulticastShims
import Synchronization

/// One delegate in one multicast, from its add until its removal is complete. A token refers to it.
///
/// Its slot is from the pool of the multicast's stripe and is put back there. A vacant slot may go
/// to another stripe: see `lockStripe`.
struct Registration {
  struct Storage: ~Copyable {
    /// The token while live; otherwise of kind `retired` or `vacant`.
    var header: SlotHeader
    /// The details; or the release function, if `owner` says so. Most registrations with options
    /// have a release function only, and need no details.
    var word: UnsafeMutableRawPointer?
    /// The context, if there is a release function here.
    var context: UnsafeMutableRawPointer?
  }

  /// A bit of `owner`, above the bits of an index: the word is a release function.
  private static let releasing: UInt32 = 1 << 31

  static var directory: SlabDirectory {
    SlabDirectory(.registrations, stride: MemoryLayout<Storage>.stride)
  }

  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot at an index that has been allocated.
  @inline(__always) init(index: UInt32) {
    self.index = index
    let slot = Self.directory.slot(index).unsafelyUnwrapped
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The slot that a token leads to, whatever its occupant; nil if it leads to no slot.
  @inline(__always) init?(slotOf token: Token) {
    guard token.kind == .registration, let slot = Self.directory.slot(token.index) else {
      return nil
    }
    index = token.index
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  private init(_ index: UInt32, at slot: UnsafeMutablePointer<SlotHeader>) {
    self.index = index
    storage = UnsafeMutableRawPointer(slot).assumingMemoryBound(to: Storage.self)
  }

  var slot: UnsafeMutablePointer<SlotHeader> {
    UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
  }

  static func isLive(_ token: Token) -> Bool {
    guard let registration = Registration(slotOf: token) else { return false }
    return registration.id == token
  }

  // MARK: - Fields

  var id: Handle {
    get { storage.pointee.header.id.load(ordering: .acquiring) }  // order: occupant
    nonmutating set { storage.pointee.header.id.store(newValue, ordering: .releasing) }
  }

  /// The current token, or the last one.
  var token: Token { id.changed(to: .registration) }

  /// The index of its multicast.
  ///
  /// Relaxed: it is the occupant's, if the caller knows the occupant's handle.
  var owner: UInt32 {
    storage.pointee.header.owner.load(ordering: .relaxed) & ~Self.releasing
  }

  /// Whether the release function is in the slot. Then the registration has no details.
  var isReleasing: Bool {
    storage.pointee.header.owner.load(ordering: .relaxed) & Self.releasing != 0
  }

  var details: RegistrationDetails.Address? {
    get {
      isReleasing ? nil : storage.pointee.word?.assumingMemoryBound(to: RegistrationDetails.self)
    }
    nonmutating set { storage.pointee.word = UnsafeMutableRawPointer(newValue) }
  }

  /// The details of a registration that certainly has some: it is filtered, weak, queued or
  /// prioritized.
  var knownDetails: RegistrationDetails.Address {
    storage.pointee.word.unsafelyUnwrapped.assumingMemoryBound(to: RegistrationDetails.self)
  }

  /// Nil if it has none.
  var label: UnsafeMutablePointer<shims_label>? {
    details.flatMap { RegistrationDetails.label(of: $0) }
  }

  /// Whether cleanup is pending when the registration has been reclaimed.
  var hasPendingCleanup: Bool { storage.pointee.word != nil }
  /// Whether the pending cleanup has a release function.
  var hasRelease: Bool { hasPendingCleanup && details.map { $0.pointee.release != nil } ?? true }

  /// Stores a release function in a slot that has been taken. The stripe's lock is held.
  func setRelease(
    _ release: @escaping RegistrationDetails.Release, _ context: UnsafeMutableRawPointer?
  ) {
    storage.pointee.header.owner.store(owner | Self.releasing, ordering: .relaxed)
    storage.pointee.word = unsafeBitCast(release, to: UnsafeMutableRawPointer?.self)
    storage.pointee.context = context
  }

  /// While live: its place in the invocation list. Guarded by the stripe's lock.
  var place: UInt32 {
    get { storage.pointee.header.link.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.link.store(newValue, ordering: .relaxed) }
  }

  /// While retired: index + 1 of the next in its chain, or 0. It belongs to the chain.
  fileprivate var next: UInt32 {
    get { place }
    nonmutating set { place = newValue }
  }

  /// Takes the lock that guards the slot's occupant.
  ///
  /// Until the lock is held, a vacant slot may go to another stripe and have an occupant there. So
  /// the owner is compared under the lock. The owner is the occupant's if the handle is the same
  /// before and after: an owner is stored before the handle (release), and no handle comes twice.
  /// An occupant of this stripe stays while the lock is held. A vacant slot may still go to another
  /// stripe; so the caller must not read the handle once more.
  @inline(__always) func lockStripe() -> (stripe: Stripe, id: Handle) {
    while true {
      let owner = self.owner
      let stripe = Stripe(of: owner)
      stripe.lockInline()
      if let id = id(guardedAs: owner) { return (stripe, id) }
      stripe.unlock()
    }
  }

  /// The handle of the occupant, if the lock of the earlier owner's stripe, which is held, guards
  /// it.
  func id(guardedAs owner: UInt32) -> Handle? {
    let id = self.id
    // Acquire: the handle is read after it.
    let now = storage.pointee.header.owner.load(ordering: .acquiring)  // order: owner
    return (now ^ owner) % Stripe.count == 0 && self.id == id ? id : nil
  }

  // MARK: - Under the stripe's lock

  /// Gives slabs that are vacant to all stripes. No lock is held.
  static func collect() {
    for index in 0..<Stripe.count {
      let stripe = Stripe(of: index)
      stripe.lock()  //~ stripe_locked_after_slabs
      Lock.slabs.lock()
      stripe.pool(in: directory).collect { _ in true }
      if index == Stripe.count &- 1 { directory.didCollect() }
      Lock.slabs.unlock()
      stripe.unlock()
    }
  }

  /// Takes a vacant slot.
  static func take(from stripe: Stripe, owner: UInt32) throws(Status) -> Registration {
    if let registration = takeVacant(from: stripe, owner: owner) { return registration }
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    try stripe.pool(in: directory).grow()
    return takeVacant(from: stripe, owner: owner).unsafelyUnwrapped
  }

  /// - Returns: nil if the pool has to grow first.
  @inline(__always)
  static func takeVacant(from stripe: Stripe, owner: UInt32) -> Registration? {
    guard let (index, slot) = stripe.pool(in: directory).takeVacant() else { return nil }
    let registration = Registration(index, at: slot)
    //~ wrong_owner_of_registration
    registration.storage.pointee.header.owner.store(owner, ordering: .relaxed)
    registration.checkTaken(from: stripe)
    return registration
  }

  /// Makes a slot live, with a new token.
  func activate() -> Token {
    let token = id.next(.registration, index: index)
    id = token
    return token
  }
}

/// Registrations, linked through their slots.
struct RegistrationChain: Sequence {
  private var head: UInt32 = 0  // index + 1

  init() {}

  var isEmpty: Bool { head == 0 }
  var hasOne: Bool { first?.next == 0 }
  var first: Registration? { isEmpty ? nil : Registration(index: head &- 1) }

  mutating func push(_ registration: Registration) {
    registration.next = head
    head = registration.index &+ 1
  }

  mutating func pop() -> Registration? {
    guard let registration = first else { return nil }
    head = registration.next
    return registration
  }

  /// Visits the chain and leaves it as it is.
  struct Iterator: IteratorProtocol {
    fileprivate var rest: UInt32

    mutating func next() -> Registration? {
      guard rest != 0 else { return nil }
      let registration = Registration(index: rest &- 1)
      rest = registration.next
      return registration
    }
  }

  func makeIterator() -> Iterator { Iterator(rest: head) }

  /// Takes out all matching registrations. Both chains keep their order.
  mutating func extract(where matches: (Registration) -> Bool) -> RegistrationChain {
    var (kept, extracted) = (RegistrationChain(), RegistrationChain())
    while let registration = pop() {
      if matches(registration) { extracted.push(registration) } else { kept.push(registration) }
    }
    while let registration = kept.pop() { push(registration) }
    return extracted.reversed()
  }

  private consuming func reversed() -> RegistrationChain {
    var result = RegistrationChain()
    while let registration = pop() { result.push(registration) }
    return result
  }
}

/// Two delegates are equal if function and context both are.
func == (a: multicast_delegate, b: multicast_delegate) -> Bool {
  unsafeBitCast(a.function, to: UInt.self) == unsafeBitCast(b.function, to: UInt.self)
    && a.context == b.context
}
