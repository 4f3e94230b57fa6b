import Synchronization

/// A hazard frame: published by a thread for one invocation, queue run, look-up of a name, or call
/// of a function of a watch.
///
/// The owner writes it without atomic read-modify-writes. Writers read it after a heavy fence.
struct Frame {
  struct Fields: ~Copyable {
    /// The target of the frame. No target ends the stack of frames.
    let target: Atomic<Target>
    /// The epoch from before the frame was published. This invocation may read a list that was
    /// retired at a later epoch.
    let epoch: Atomic<Epoch>
    /// The hazard: the token of the registration whose delegate is being called, or none. An object
    /// that a hazard names is not reclaimed. While a queue's wake function runs, the hazard is the
    /// handle of the queue; while a function of a watch runs, the handle of the watch.
    let hazard: Atomic<Token>
    /// The address of the invocation list that is being read; 0 until the list is known.
    let list: Atomic<UInt>
    /// The address of the payload or receipt that this invocation or run retains, or 0.
    let payload: Atomic<UInt>
    var stackMark: StackMark
  }

  let fields: UnsafeMutablePointer<Fields>

  init(_ fields: UnsafeMutablePointer<Fields>) { self.fields = fields }

  #if MULTICAST_INTERNAL_CHECKS
    static func == (a: Frame, b: Frame) -> Bool { a.fields == b.fields }
  #endif
  static func != (a: Frame, b: Frame) -> Bool { a.fields != b.fields }

  // MARK: - For the owner

  var target: Target { fields.pointee.target.load(ordering: .relaxed) }
  var epoch: Epoch { fields.pointee.epoch.load(ordering: .relaxed) }
  var hazard: Token { fields.pointee.hazard.load(ordering: .relaxed) }

  var list: UInt {
    get { fields.pointee.list.load(ordering: .relaxed) }
    nonmutating set { fields.pointee.list.store(newValue, ordering: .relaxed) }
  }

  var payload: UInt {
    get { fields.pointee.payload.load(ordering: .relaxed) }
    nonmutating set { fields.pointee.payload.store(newValue, ordering: .relaxed) }
  }

  /// Makes the frame visible. The caller makes the light fence.
  ///
  /// Release: a writer that sees the target sees this epoch or a later one, and no older list.
  func publish(_ target: Target, epoch: Epoch) {
    fields.pointee.epoch.store(epoch, ordering: .relaxed)
    fields.pointee.list.store(0, ordering: .relaxed)
    fields.pointee.target.store(target, ordering: .releasing)  // order: frame
  }

  /// Release: a writer that does not see the frame any more may reclaim the list.
  func withdraw() {
    fields.pointee.target.store(.none, ordering: .releasing)  // order: withdrawal
  }

  /// Protects a registration. The caller makes the light fence, and then looks at the mark.
  func setHazard(_ token: Token) {
    fields.pointee.hazard.store(token, ordering: .releasing)  // order: removal
  }

  /// Release: the delegate's effects happen before a remover sees that the hazard is gone.
  func clearHazard() {
    // order: call_ends
    fields.pointee.hazard.store(.none, ordering: .releasing)  //~ hazard_cleared_relaxed
  }

  // MARK: - For all threads

  /// The target, and the registration that the frame protects. Nil if it is not in use.
  var published: (target: Target, hazard: Token)? {
    // Acquire, both: pair with the releases of `withdraw` and `clearHazard`, so that the delegate's
    // effects happen before the reader's next steps.
    let target = fields.pointee.target.load(ordering: .acquiring)  // order: frame
    if target.isNone { return nil }
    return (target, fields.pointee.hazard.load(ordering: .acquiring))  // order: call_ends
  }

  /// Whether this is an invocation that may be reading a retired list.
  ///
  /// No, if the invocation began after the list was retired, or has published another list. While
  /// this function reads the frame, a later invocation may reuse the frame. The later invocation
  /// began after the heavy fence and cannot find the retired list, so the result does not matter.
  func mayRead(_ list: UInt, of target: Target, retiredAt epoch: Epoch) -> Bool {
    guard let (published, _) = published, published == target else { return false }
    guard fields.pointee.epoch.load(ordering: .relaxed) < epoch else { return false }
    let known = fields.pointee.list.load(ordering: .relaxed)
    return known == 0 || known == list
  }
}

/// The target of a frame: the address of a slot, with the kind of work in the low bits, which are
/// zero in an address of a slot.
struct Target: RawRepresentable, AtomicRepresentable {
  let rawValue: UInt

  init(rawValue: UInt) { self.rawValue = rawValue }

  static var none: Target { Target(rawValue: 0) }

  /// An invocation of the multicast in a slot.
  static func invocation(_ slot: UnsafeMutableRawPointer) -> Target {
    Target(rawValue: UInt(bitPattern: slot))
  }

  /// A run of the queue in a slot.
  static func run(_ slot: UnsafeMutableRawPointer) -> Target {
    Target(rawValue: UInt(bitPattern: slot) | 1)
  }

  /// A look-up in the names of the broadcaster in a slot.
  static func lookUp(_ slot: UnsafeMutableRawPointer) -> Target {
    Target(rawValue: UInt(bitPattern: slot) | 2)
  }

  /// A function of a watch.
  static var watch: Target { Target(rawValue: 3) }

  var isNone: Bool { rawValue == 0 }
  var isInvocation: Bool { rawValue & 3 == 0 }
  var isRun: Bool { rawValue & 3 == 1 }

  /// Not of a watch.
  var slot: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: rawValue & ~3).unsafelyUnwrapped
  }

  /// The slot of a target that is an invocation.
  var invokedSlot: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: rawValue).unsafelyUnwrapped
  }

  static func == (a: Target, b: Target) -> Bool { a.rawValue == b.rawValue }
}
