import MulticastHeader
import MulticastShims
import Synchronization

/// One delegate in one multicast, from its add until its removal is complete.
///
/// A registration's slot comes from the pool of the multicast's stripe and is returned to that
/// pool. A vacant slot may move to another stripe (see `lockStripe`).
struct Registration {
  struct Storage: ~Copyable {
    /// The handle equals the token if and only if the registration is live and plain. If the
    /// registration is live but not plain, the handle has the kind `special`. If it is not live,
    /// the handle has the kind `retired` or `vacant`.
    var header: SlotHeader
    // These fields are written before the registration becomes live, and do not change until it is
    // reclaimed.
    var function: multicast_function?
    var context: UnsafeMutableRawPointer?
    /// The details, or the release function if `Flags.releasing` is set. Most registrations with
    /// options have only a release function, so they need no details.
    var word: UnsafeMutableRawPointer?
  }

  /// Bits of `owner` above the bits of the index. Except for `called`, these bits change only under
  /// the stripe's lock.
  enum Flags {
    /// `word` is a release function.
    static let releasing: UInt32 = 1 << 31
    static let paused: UInt32 = 1 << 30
    /// The delegate is called at most once.
    static let once: UInt32 = 1 << 29
    /// The context is locked by functions of the multicast, not of the registration.
    static let shared: UInt32 = 1 << 28
    /// The registration is not plain, whether or not it is paused.
    static let special: UInt32 = 1 << 27
    /// The registration is retired, but calls to its delegate may still be running (see
    /// `RegistrationChain.extractUncalledOfMany`).
    static let called: UInt32 = 1 << 26
  }

  private static var indexMask: UInt32 { 1 << UInt32(Handle.indexBits) - 1 }

  static var directory: SlabDirectory {
    SlabDirectory(.registrations, stride: MemoryLayout<Storage>.stride)
  }

  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot at an allocated index.
  @inline(__always) init(index: UInt32) {
    self.index = index
    let slot = Self.directory.slot(index).unsafelyUnwrapped
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The slot at the index of a token, or nil if there is no such slot. The slot may have been
  /// reused since.
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

  /// The token of the registration, or of the previous registration if the slot is vacant.
  var token: Token { id.changed(to: .registration) }

  /// Relaxed is enough: the value is stored before the handle, with release. So a thread that has
  /// read the current registration's handle, with acquire, reads the value of that registration.
  private var ownerAndFlags: UInt32 {
    get { storage.pointee.header.owner.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.owner.store(newValue, ordering: .relaxed) }
  }

  /// The index of the multicast to which the registration belongs.
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

  /// Whether this registration is for a given delegate. If the registration is not live, the result
  /// is meaningless. The loads are atomic, because the slot may have moved to another stripe, where
  /// another thread may be activating a registration in it.
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

  var priority: Int32 {
    if _fastPath(storage.pointee.word == nil) { return 0 }
    return details?.pointee.priority ?? 0
  }

  var label: UnsafeMutablePointer<shims_label>? {
    details.flatMap { RegistrationDetails.label(of: $0) }
  }

  /// Whether reclaiming the registration requires a cleanup.
  var hasPendingCleanup: Bool { storage.pointee.word != nil }
  var hasRelease: Bool { hasPendingCleanup && details.map { $0.pointee.release != nil } ?? true }

  /// In a retired registration, the index plus 1 of the next registration in its chain, or 0 at the
  /// end. Only the owner of the chain uses this field.
  fileprivate var next: UInt32 {
    get { storage.pointee.header.link.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.link.store(newValue, ordering: .relaxed) }
  }

  // MARK: - The lock

  /// Takes the lock that guards the slot, and reads the handle.
  ///
  /// Before this thread holds the lock, a vacant slot may move to another stripe and be used there.
  /// Therefore this function compares the owner again under the lock. It reads the handle before
  /// and after the owner. If the two handles are equal, the owner belongs to that handle, because
  /// the owner is stored before the handle (release) and no handle is used twice. While the lock is
  /// held, a registration of this stripe stays in its slot. A vacant slot may still move to another
  /// stripe, so the caller must not read the handle again.
  @inline(__always) func lockStripe() -> (stripe: Stripe, id: Handle) {
    while true {
      let owner = self.owner
      let stripe = Stripe(of: owner)
      stripe.lockInline()
      if let id = id(guardedAs: owner) { return (stripe, id) }
      stripe.unlock()
    }
  }

  /// The handle in the slot; nil if the lock of `owner`'s stripe, which the caller holds, does not
  /// guard the slot.
  func id(guardedAs owner: UInt32) -> Handle? {
    let id = self.id
    // Acquire: the second read of the handle must come after this read of the owner.
    let now = storage.pointee.header.owner.load(ordering: .acquiring)  // order: owner
    return (now ^ owner) % Stripe.count == 0 && self.id == id ? id : nil
  }

  // MARK: - Under the stripe's lock

  /// Makes the vacant slabs of every stripe available to all stripes. No lock is held.
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

  /// Stores the release function of a delegate without details, in a slot that has just been taken.
  func setRelease(_ release: @escaping RegistrationDetails.Release) {
    ownerAndFlags |= Flags.releasing
    storage.pointee.word = unsafeBitCast(release, to: UnsafeMutableRawPointer?.self)
  }

  func setDetails(_ details: RegistrationDetails.Address) {
    storage.pointee.word = UnsafeMutableRawPointer(details)
  }

  /// Activates a registration in a slot that has just been taken, and gives it a new token.
  ///
  /// - Parameters:
  ///   - flags: Any of `once`, `shared` and `special`.
  ///   - out: Receives the token before this function stores to `id`. After that store, a thread
  ///     that guesses the token can already call the delegate.
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

  /// Pauses or resumes a live registration.
  func setPaused(_ isPaused: Bool) {
    let flags = ownerAndFlags & ~Flags.paused | (isPaused ? Flags.paused : 0)
    ownerAndFlags = flags
    let isSpecial = flags & (Flags.paused | Flags.special) != 0
    id = id.changed(to: isSpecial ? .special : .registration)
  }

  /// Invalidates the token. Calls to the delegate may still be running.
  func retire() {
    id = id.changed(to: .retired)  //~ not_retired
    if hasPendingCleanup { Lifetime.retire(self) }
  }

  // MARK: - Being called

  /// Clears `Flags.called` in a retired registration.
  func clearCalled() {
    storage.pointee.header.owner.bitwiseAnd(~Flags.called, ordering: .relaxed)
  }

  /// Sets `Flags.called` if a registration is retired. Any thread may set this flag at any time. If
  /// the slot has been reused by then, the flag has no effect on the new registration.
  static func setCalled(_ token: Token) {
    guard let registration = Registration(slotOf: token),
      registration.id == token.changed(to: .retired)
    else { return }
    registration.storage.pointee.header.owner.bitwiseOr(Flags.called, ordering: .relaxed)
  }
}

/// A chain of registrations, linked through their slots.
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

  /// Visits the chain without changing it.
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

  /// Moves all matching registrations to a new chain. Both chains keep their order.
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

func == (a: multicast_delegate, b: multicast_delegate) -> Bool {
  unsafeBitCast(a.function, to: UInt.self) == unsafeBitCast(b.function, to: UInt.self)
    && a.context == b.context
}

extension Registration {
  /// Checks a slot that has just been taken from its pool. The caller holds the stripe's lock.
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

  /// Checks a slot that is about to be returned to its pool. The caller holds the stripe's lock.
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
  /// Checks that the chain has an end and that all its registrations are retired. The caller owns
  /// the chain.
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
  /// Stores the token in a caller's variable with a single atomic store, because another thread may
  /// be reading the variable. Relaxed is enough: the token is stored before the slot's handle, and
  /// a thread in a call to the delegate has read that handle with acquire.
  @inline(__always)
  func store(to out: UnsafeMutablePointer<multicast_token>) {
    UnsafeMutableRawPointer(out).assumingMemoryBound(to: Atomic<UInt64>.self).pointee.store(
      rawValue, ordering: .relaxed)
  }
}

/// The end of a retired registration: it is reclaimed and then released.
extension Registration {
  /// Returns the slot to the pool. Requires that no call to the delegate is running. The caller has
  /// to run the cleanup that this function returns.
  @discardableResult
  func reclaim(to stripe: Stripe) -> PendingCleanup {
    var cleanup = PendingCleanup()
    if has(Flags.releasing) {
      cleanup.release = unsafeBitCast(storage.pointee.word, to: RegistrationDetails.Release?.self)
      cleanup.context = storage.pointee.context
    } else {
      cleanup.details = details
    }
    storage.pointee.word = nil  //~ details_left_in_slot
    putBack(to: stripe)
    return cleanup
  }

  /// Like `reclaim`, for a registration without a pending cleanup.
  func putBack(to stripe: Stripe) {
    id = id.changed(to: .vacant)  //~ reclaimed_not_vacant
    checkReclaimed(to: stripe)
    stripe.pool(in: Self.directory).putBack(index, slot)  //~ reclaimed_twice
  }
}

extension RegistrationChain {
  /// Extracts all registrations whose delegates are not being called by any thread. If a token is
  /// passed, considers only that token's registration.
  mutating func extractUncalled(_ token: Token = .none) -> RegistrationChain {
    //~ released_during_other_call
    extract { (token.isNone || $0.token == token) && !ThreadRegistry.isCalled($0.token) }
  }

  /// Like `extractUncalled`, but efficient for many registrations: reads the frames of all threads
  /// only once, and marks the slot of each registration that is being called. Another thread may
  /// have set a mark for a call that has since returned. A mark for such a call is harmless,
  /// because a thread reads the hazards again before it waits for a registration.
  mutating func extractUncalledOfMany() -> RegistrationChain {
    for registration in self { registration.clearCalled() }
    for record in ThreadRegistry.all {
      record.forEachFrame { _, token in if !token.isNone { Registration.setCalled(token) } }
    }
    return extract { !$0.has(Registration.Flags.called) }  //~ no_wait_for_calls
  }

  /// In the child of a fork, returns all registrations that have been removed but not yet
  /// reclaimed. The chains of the parent's threads are lost with their stacks, but each
  /// registration is still in its slot until it is reclaimed. Slots change only under their
  /// stripes' locks, which the forking thread held. So if a removed registration is not found, it
  /// had been reclaimed before the fork, and its release function had started or was about to
  /// start.
  static func allRetiredInChild() -> RegistrationChain {
    var all = RegistrationChain()
    for index in Registration.directory.indices {
      let registration = Registration(index: index)
      if registration.id.kind == .retired { all.push(registration) }
    }
    return all
  }

  /// Reclaims all of these registrations, and runs their release functions in order. Requires that
  /// no call to their delegates is running, and that no lock is held.
  consuming func reclaimAndRelease() {
    let process = Fork.generation
    // Reclaim the registrations without a release function first, because the release function of
    // another registration might end a lifetime and wait for them.
    if !isEmpty && !hasOne { extract { !$0.hasRelease }.reclaimEach(in: process) }
    reclaimEach(in: process)
  }

  @_optimize(speed)
  private consuming func reclaimEach(in process: UInt32) {
    // A registration stays in its slot until it is reclaimed, because its context is stored nowhere
    // else. If a release function forks, the child's fork handler finds the remaining registrations
    // in their slots and reclaims them, so this loop must stop in the child.
    while process == Fork.generation, let registration = pop() {
      RaceDetector.didRemove(registration.storage)
      let stripe = Stripe(of: registration.owner)  //~ reclaimed_to_wrong_stripe
      stripe.lockInline()
      let cleanup = registration.reclaim(to: stripe)
      stripe.unlockInline()
      cleanup.run()  //~ released_under_lock
    }
  }
}

/// The cleanup that remains to be done after a registration has been reclaimed: calling its release
/// function, if any, and freeing its details.
struct PendingCleanup {
  var details: RegistrationDetails.Address? = nil
  /// The release function of a registration without details.
  var release: RegistrationDetails.Release? = nil
  var context: UnsafeMutableRawPointer? = nil

  /// Runs the release function, and frees the details. No lock is held.
  func run() {
    if let details { return RegistrationDetails.release(details) }
    if let release { Self.run(release, context) }
  }

  static func run(_ release: RegistrationDetails.Release, _ context: UnsafeMutableRawPointer?) {
    let depth = shims_get_release_depth()
    shims_set_release_depth(depth &+ 1)
    CallerCode.releasing { release(context) }  //~ released_twice
    shims_set_release_depth(depth)
  }
}

extension RegistrationDetails {
  /// Runs the release function, if any, and frees the details. No lock is held.
  ///
  /// Do nothing slow before calling the release function. If another thread forks in the meantime,
  /// the child never calls the function.
  static func release(_ details: RegistrationDetails.Address) {
    let (release, context) = (details.pointee.release, details.pointee.context)
    let lifetime = membership(of: details, .owned).pointee.lifetime
    let queue = membership(of: details, .recipient).pointee.lifetime
    if let release { PendingCleanup.run(release, context) }
    deallocate(details)
    if !lifetime.isNone { Lifetime.memberIsGone(lifetime) }
    if !queue.isNone { Lifetime.memberIsGone(queue) }
  }
}
