import MulticastShims
import Synchronization

/// What a token refers to: one delegate in one multicast, from its add until it is in no call.
///
/// Slots come from the pool of the multicast's stripe and go back to it, so the stripe that a token
/// leads to is the same for ever, also for a token that is stale.
struct Registration {
  struct Storage: ~Copyable {
    /// The token while live; of kind `leaving` or `vacant` otherwise, with the same generation.
    let id: Atomic<UInt64>
    /// Index of the multicast.
    let owner: Atomic<UInt32>
    /// Live: place in the invocation list. Leaving or vacant: index + 1 of the next in its chain,
    /// or 0. Guarded by the stripe, or owned by whoever has the chain.
    var link: UInt32
    var extras: UnsafeMutablePointer<Extras>?
  }

  static let smallestSlabShift: UInt32 = 4

  private static var directory: SlabDirectory {
    @inline(__always) get {
      SlabDirectory(
        shims_get_registration_directory().unsafelyUnwrapped,
        stride: MemoryLayout<Storage>.stride)
    }
  }
  nonisolated(unsafe) private static var slabCount = 0  // guarded by the slab lock

  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot at an index that was given out, so that must exist.
  init(index: UInt32) {
    self.index = index
    let slot = Self.directory.slot(index).unsafelyUnwrapped
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The slot that a token leads to, whatever lives there now; nil where it leads nowhere.
  init?(slotOf token: UInt64) {
    guard Handle.kind(of: token) == Handle.Kind.registration,
      let slot = Self.directory.slot(Handle.index(of: token))
    else { return nil }
    index = Handle.index(of: token)
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  var id: UInt64 { storage.pointee.id.load(ordering: .acquiring) }

  /// The token that it has, or last had.
  var token: UInt64 { Handle.change(id, to: Handle.Kind.registration) }

  /// Relaxed: every owner that a slot ever has leads to the same stripe, and the rest is read
  /// under that stripe's lock.
  var owner: UInt32 { storage.pointee.owner.load(ordering: .relaxed) }

  static func isLive(_ token: UInt64) -> Bool {
    guard let registration = Registration(slotOf: token) else { return false }
    return registration.id == token
  }

  // MARK: - Pool. The stripe's lock is held.

  /// - Returns: a vacant slot.
  static func take(from stripe: Stripe, owner: UInt32) throws(Status) -> Registration {
    if let registration = takeVacant(from: stripe, owner: owner) { return registration }
    try grow(stripe.state)
    return takeVacant(from: stripe, owner: owner).unsafelyUnwrapped
  }

  /// - Returns: nil where the pool has to grow first.
  @inline(__always)
  static func takeVacant(from stripe: Stripe, owner: UInt32) -> Registration? {
    let pool = stripe.state
    let registration: Registration
    if pool.pointee.first_vacant != 0 {
      registration = Registration(index: pool.pointee.first_vacant &- 1)
      pool.pointee.first_vacant = registration.storage.pointee.link
    } else {
      guard pool.pointee.next_unused != pool.pointee.end_unused else { return nil }
      registration = Registration(index: pool.pointee.next_unused)
      pool.pointee.next_unused &+= 1
    }
    registration.storage.pointee.owner.store(owner, ordering: .relaxed)
    checkInvariants(of: stripe)
    return registration
  }

  /// Makes a slot live, under a new token.
  func activate() -> UInt64 {
    let token = Handle.next(after: id, kind: Handle.Kind.registration, index: index)
    storage.pointee.id.store(token, ordering: .releasing)
    return token
  }

  /// Ends the life of the token; the slot itself is still in somebody's hands.
  func retire() {
    storage.pointee.id.store(
      Handle.change(id, to: Handle.Kind.leaving), ordering: .releasing)
    Lifetime.retire(self)
  }

  /// Puts the slot back into the pool.
  ///
  /// - Returns: its extras, if any; they are the caller's.
  @discardableResult
  func giveBack(to stripe: Stripe) -> UnsafeMutablePointer<Extras>? {
    let extras = storage.pointee.extras
    let vacant = Handle.change(id, to: Handle.Kind.vacant)
    storage.pointee.extras = nil
    storage.pointee.id.store(vacant, ordering: .releasing)
    if Handle.isExhausted(vacant) { return extras }
    storage.pointee.link = stripe.state.pointee.first_vacant
    stripe.state.pointee.first_vacant = index &+ 1
    Self.checkInvariants(of: stripe)
    return extras
  }

  /// Adds a slab to the pool: twice as large as its last one, so that few delegates take little.
  private static func grow(_ pool: UnsafeMutablePointer<shims_stripe>) throws(Status) {
    let shift = min(smallestSlabShift &+ pool.pointee.slab_shift, SlabDirectory.placeBits)
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    guard slabCount < SlabDirectory.capacity else { throw .limit }
    guard directory.publish(slab: slabCount, shift: Int(shift)) else { throw .outOfMemory }
    pool.pointee.next_unused = UInt32(truncatingIfNeeded: slabCount) << SlabDirectory.placeBits
    pool.pointee.end_unused = pool.pointee.next_unused &+ (1 << shift)
    pool.pointee.slab_shift &+= 1
    slabCount &+= 1
  }
}

/// Registrations linked by their slots: what a removal has taken out, and has to see off.
struct RegistrationChain: Sequence {
  private var head: UInt32 = 0  // index + 1

  init() {}

  var isEmpty: Bool { head == 0 }
  var first: Registration? { isEmpty ? nil : Registration(index: head &- 1) }

  mutating func push(_ registration: Registration) {
    registration.storage.pointee.link = head
    head = registration.index &+ 1
  }

  mutating func pop() -> Registration? {
    guard let registration = first else { return nil }
    head = registration.storage.pointee.link
    return registration
  }

  /// Goes through the chain and leaves it as it is.
  struct Iterator: IteratorProtocol {
    fileprivate var rest: UInt32

    mutating func next() -> Registration? {
      guard rest != 0 else { return nil }
      let registration = Registration(index: rest &- 1)
      rest = registration.storage.pointee.link
      return registration
    }
  }

  func makeIterator() -> Iterator { Iterator(rest: head) }

  /// Takes out all that match; both chains keep their order.
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

  /// Gives every slot back to its pool, then runs the releases. No lock is held.
  mutating func finish() {
    var due: UnsafeMutablePointer<Extras>? = nil
    self = reversed()  // the last is pushed first, to be released last
    while let registration = pop() {
      let stripe = Stripe(of: registration.owner)
      stripe.lock()
      let extras = registration.giveBack(to: stripe)
      stripe.unlock()
      if let extras {
        extras.pointee.next = due
        due = extras
      }
    }
    Extras.release(due)
  }
}
