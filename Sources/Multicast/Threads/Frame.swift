import Synchronization

/// A hazard frame: published by a thread for one invocation, queue run, look-up of a name, or call
/// of a function of a watch.
///
/// The owner writes it without atomic read-modify-writes. Writers read it after a heavy fence.
struct Frame {
  struct Fields: ~Copyable {
    /// The target of the frame. No target ends the stack of frames.
    let target: Atomic<Target>
    /// The address of the invocation list that is being read, or 0: a hazard pointer. A list that a
    /// frame names is not freed. Other threads compare the address; they never dereference it.
    let list: Atomic<UInt>
    /// The hazard: the token of the registration whose delegate is being called, or none. An object
    /// that a hazard names is not reclaimed. While a queue's wake function runs, the hazard is the
    /// handle of the queue; while a function of a watch runs, the handle of the watch.
    let hazard: Atomic<Token>
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
  var hazard: Token { fields.pointee.hazard.load(ordering: .relaxed) }

  var list: UInt { fields.pointee.list.load(ordering: .relaxed) }

  var payload: UInt {
    get { fields.pointee.payload.load(ordering: .relaxed) }
    nonmutating set { fields.pointee.payload.store(newValue, ordering: .relaxed) }
  }

  /// Makes the frame visible. The caller makes the light fence.
  ///
  /// Release: a thread that sees the target sees this list or a later one.
  func publish(_ target: Target, reading list: UInt = 0) {
    fields.pointee.list.store(list, ordering: .relaxed)
    fields.pointee.target.store(target, ordering: .releasing)  // order: frame
  }

  /// Replaces the list. The caller makes the light fence, and then looks whether the list is still
  /// current.
  ///
  /// Release: the invocation's reads of the last list come before.
  func publish(reading list: UInt) {
    fields.pointee.list.store(list, ordering: .releasing)  // order: list_hazard
  }

  /// Says that this invocation makes full fences. The caller makes one afterwards.
  func setFenced() {
    fields.pointee.target.store(target.fenced, ordering: .releasing)  // order: frame
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
}

/// The target of a frame: the address of a slot. The low bits, which are zero in an address of a
/// slot, have the kind of work, and whether an invocation makes full fences.
struct Target: RawRepresentable, AtomicRepresentable {
  let rawValue: UInt

  init(rawValue: UInt) { self.rawValue = rawValue }

  static var none: Target { Target(rawValue: 0) }

  private static let kind: UInt = 3
  private static let fenced: UInt = 4

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
  var isInvocation: Bool { rawValue & Self.kind == 0 }
  var isRun: Bool { rawValue & Self.kind == 1 }

  /// Whether this is an invocation that may make light fences.
  var isBiased: Bool { rawValue & Self.fenced == 0 }  //~ always_tagged
  var fenced: Target { Target(rawValue: rawValue | Self.fenced) }

  /// Not of a watch.
  var slot: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: rawValue & ~(Self.kind | Self.fenced)).unsafelyUnwrapped
  }

  /// Whether both are the same work, with whatever fences.
  static func == (a: Target, b: Target) -> Bool { (a.rawValue ^ b.rawValue) & ~fenced == 0 }
}
