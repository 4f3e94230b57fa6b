import MulticastHeader
import MulticastShims
import Synchronization

/// One delegate in one multicast, from its add until its removal is complete. A token refers to it.
///
/// Everything that invocations and writers know of a registration is in its slot, which a list
/// names together with the token. The slot is from the pool of the multicast's stripe and is put
/// back there. A vacant slot may go to another stripe: see `lockStripe`.
struct Registration {
  struct Storage: ~Copyable {
    /// The handle is the token if and only if the registration is live and plain. The kind is
    /// `special` if it is live and not plain; otherwise `retired` or `vacant`.
    var header: SlotHeader
    // Written before the registration is live, and not changed until it is reclaimed.
    var function: multicast_function?
    var context: UnsafeMutableRawPointer?
    /// The details; or the release function, if `Flags.releasing` says so. Most registrations with
    /// options have a release function only, and need no details.
    var word: UnsafeMutableRawPointer?
  }

  /// Bits of `owner`, above the bits of an index. The stripe's lock guards changes, except of
  /// `called`.
  enum Flags {
    /// `word` is a release function.
    static let releasing: UInt32 = 1 << 31
    static let paused: UInt32 = 1 << 30
    /// The delegate is called once.
    static let once: UInt32 = 1 << 29
    /// The context is locked for each call, by functions that are the multicast's.
    static let shared: UInt32 = 1 << 28
    /// Not plain, even if it is not paused.
    static let special: UInt32 = 1 << 27
    /// Retired, and perhaps being called: see `RegistrationChain.extractUncalled`.
    static let called: UInt32 = 1 << 26
  }

  private static let indexMask: UInt32 = 1 << UInt32(Handle.indexBits) - 1

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

  @inline(__always) init(index: UInt32, at storage: UnsafeMutablePointer<Storage>) {
    self.index = index
    self.storage = storage
  }

  var slot: UnsafeMutablePointer<SlotHeader> {
    UnsafeMutableRawPointer(storage).assumingMemoryBound(to: SlotHeader.self)
  }

  static func isLive(_ token: Token) -> Bool {
    guard let registration = Registration(slotOf: token) else { return false }
    return registration.id.isLive(as: token)
  }

  // MARK: - Fields

  var id: Handle {
    get { storage.pointee.header.id.load(ordering: .acquiring) }  // order: occupant
    nonmutating set { storage.pointee.header.id.store(newValue, ordering: .releasing) }
  }

  /// The current token, or the last one.
  var token: Token { id.changed(to: .registration) }

  /// Relaxed: what is read is the occupant's, if the caller knows the occupant's handle.
  private var ownerAndFlags: UInt32 {
    get { storage.pointee.header.owner.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.owner.store(newValue, ordering: .relaxed) }
  }

  /// The index of its multicast.
  var owner: UInt32 { ownerAndFlags & Self.indexMask }

  func has(_ flag: UInt32) -> Bool { ownerAndFlags & flag != 0 }

  var delegate: multicast_delegate {
    multicast_delegate(function: storage.pointee.function, context: storage.pointee.context)
  }

  /// The function and the context.
  private var words: UnsafeMutablePointer<Atomic<UInt>> {
    (UnsafeMutableRawPointer(storage) + MemoryLayout<SlotHeader>.size).assumingMemoryBound(
      to: Atomic<UInt>.self)
  }

  /// Whether this is a registration of a delegate. The result means nothing if the registration is
  /// not live. The loads are atomic because another stripe may be activating the slot then.
  @inline(__always)
  func isOf(_ delegate: multicast_delegate) -> Bool {
    words[0].load(ordering: .relaxed) == unsafeBitCast(delegate.function, to: UInt.self)
      && words[1].load(ordering: .relaxed) == unsafeBitCast(delegate.context, to: UInt.self)
  }

  func hasFunction(of other: Registration) -> Bool {
    unsafeBitCast(storage.pointee.function, to: UInt.self)
      == unsafeBitCast(other.storage.pointee.function, to: UInt.self)
  }

  var details: RegistrationDetails.Address? {
    has(Flags.releasing)
      ? nil : storage.pointee.word?.assumingMemoryBound(to: RegistrationDetails.self)
  }

  /// The priority, from the details; 0 without details.
  var priority: Int32 {
    if _fastPath(storage.pointee.word == nil) { return 0 }
    return details?.pointee.priority ?? 0
  }

  /// Nil if it has none.
  var label: UnsafeMutablePointer<shims_label>? {
    details.flatMap { RegistrationDetails.label(of: $0) }
  }

  /// Whether cleanup is pending when the registration has been reclaimed.
  var hasPendingCleanup: Bool { storage.pointee.word != nil }
  /// Whether the pending cleanup has a release function.
  var hasRelease: Bool { hasPendingCleanup && details.map { $0.pointee.release != nil } ?? true }

  /// While retired: index + 1 of the next in its chain, or 0. It belongs to the chain.
  fileprivate var next: UInt32 {
    get { storage.pointee.header.link.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.link.store(newValue, ordering: .relaxed) }
  }

  // MARK: - The lock

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
    let registration = Registration(
      index: index, at: UnsafeMutableRawPointer(slot).assumingMemoryBound(to: Storage.self))
    //~ wrong_owner_of_registration
    registration.ownerAndFlags = owner
    registration.checkTaken(from: stripe)
    return registration
  }

  /// Stores the release function of a delegate without details in a slot that has been taken.
  func setRelease(_ release: @escaping RegistrationDetails.Release) {
    ownerAndFlags |= Flags.releasing
    storage.pointee.word = unsafeBitCast(release, to: UnsafeMutableRawPointer?.self)
  }

  func setDetails(_ details: RegistrationDetails.Address) {
    storage.pointee.word = UnsafeMutableRawPointer(details)
  }

  /// Makes a slot that has been taken live, with a new token.
  ///
  /// - Parameters:
  ///   - flags: `once`, `shared` and `special`, as far as they hold.
  ///   - out: Receives the token before the store to `id`, after which a thread that guesses the
  ///     token can call the delegate.
  @inline(__always)
  func activate(
    _ delegate: multicast_delegate, _ flags: UInt32 = 0,
    to out: UnsafeMutablePointer<multicast_token>?
  ) -> Token {
    words[0].store(unsafeBitCast(delegate.function, to: UInt.self), ordering: .relaxed)
    words[1].store(unsafeBitCast(delegate.context, to: UInt.self), ordering: .relaxed)
    if flags != 0 { ownerAndFlags |= flags }
    let token = id.next(.registration, index: index)
    if let out { token.store(to: out) }
    id = flags & Flags.special == 0 ? token : token.changed(to: .special)
    return token
  }

  /// Pauses a live registration, or ends the pause.
  func setPaused(_ isPaused: Bool) {
    let flags = ownerAndFlags & ~Flags.paused | (isPaused ? Flags.paused : 0)
    ownerAndFlags = flags
    let isSpecial = flags & (Flags.paused | Flags.special) != 0
    id = id.changed(to: isSpecial ? .special : .registration)
  }

  /// Ends the validity of the token. Calls of the delegate may still be running.
  func retire() {
    id = id.changed(to: .retired)  //~ not_retired
    if hasPendingCleanup { Lifetime.retire(self) }
  }

  // MARK: - Being called

  /// Notes that a retired registration is not called, as far as is known.
  func clearCalled() {
    storage.pointee.header.owner.bitwiseAnd(~Flags.called, ordering: .relaxed)
  }

  /// Notes that a registration is being called, if it is retired. By any thread, at any time: the
  /// note has no effect on a later occupant of the slot.
  static func setCalled(_ token: Token) {
    guard let registration = Registration(slotOf: token),
      registration.id == token.changed(to: .retired)
    else { return }
    registration.storage.pointee.header.owner.bitwiseOr(Flags.called, ordering: .relaxed)
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

extension Registration {
  /// A slot has just been taken from its pool. The stripe's lock is held.
  func checkTaken(
    from stripe: Stripe, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.that(id.kind == .vacant, "a vacant slot has no occupant", index)
      check.that(!hasPendingCleanup, "a vacant slot has no details", index)
      check.that(Stripe(of: owner) == stripe, "a slot stays in its stripe", index, owner)
    #endif
  }

  /// A slot is about to be put back. The stripe's lock is held.
  func checkReclaimed(
    to stripe: Stripe, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.that(Stripe(of: owner) == stripe, "a slot stays in its stripe", index, owner)
      check.that(!hasPendingCleanup, "a vacant slot has no details", index)
    #endif
  }
}

extension RegistrationChain {
  /// The chain has an end, and all its registrations are retired. It belongs to the caller.
  func checkRetired(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.walk(first.map { $0.index &+ 1 } ?? 0) { index in
        let registration = Registration(index: index)
        check.that(
          registration.id.kind == .retired, "a registration that is being removed is retired",
          index, registration.id.kind.rawValue)
        return registration.storage.pointee.header.link.load(ordering: .relaxed)
      }
    #endif
  }
}

extension Token {
  /// Gives the token to a caller by one store: another thread may read it meanwhile. Relaxed: a
  /// thread that is in a call of the delegate has acquired the token with the slot's handle.
  @inline(__always)
  func store(to out: UnsafeMutablePointer<multicast_token>) {
    UnsafeMutableRawPointer(out).assumingMemoryBound(to: Atomic<UInt64>.self).pointee.store(
      rawValue, ordering: .relaxed)
  }
}
