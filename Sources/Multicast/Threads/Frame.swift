import Synchronization

/// A hazard frame. A thread publishes one for each invocation, each run of a queue, each lookup of
/// a name, and each call to a watch's function.
///
/// The owner changes its frames by plain atomic stores, without read-modify-write operations.
/// Writers read the frames after a heavy fence.
struct Frame {
  struct Fields: ~Copyable {
    /// The target of the frame. The first frame without a target marks the end of the stack.
    let target: Atomic<Target>
    /// The address of the invocation list that the owner is reading, or 0. This is a hazard
    /// pointer: a list is not freed while a frame names it. Other threads compare this address, but
    /// do not use it to read the list.
    let list: Atomic<UInt>
    /// The hazard: the token of the registration whose delegate the owner is calling, if any. An
    /// object is not reclaimed while a hazard names it. While the wake function of a queue runs,
    /// the hazard is the handle of the queue. While a function of a watch runs, it is the handle of
    /// the watch.
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

  /// Makes the frame visible to other threads. The caller then executes the light fence.
  ///
  /// Release: a thread that sees the target also sees this list or a later one.
  func publish(_ target: Target, reading list: UInt = 0) {
    fields.pointee.list.store(list, ordering: .relaxed)
    fields.pointee.target.store(target, ordering: .releasing)  // order: frame
  }

  /// Replaces the list. The caller then executes the light fence, and checks whether the list is
  /// still current.
  ///
  /// Release: a writer that no longer sees the previous list's address may free that list, so this
  /// thread's reads of that list must come before this store.
  func publish(reading list: UInt) {
    fields.pointee.list.store(list, ordering: .releasing)  // order: list_hazard
  }

  /// Tags the target, which says that this frame's invocation executes full fences. The caller then
  /// executes a full fence.
  func setFenced() {
    fields.pointee.target.store(target.fenced, ordering: .releasing)  // order: frame
  }

  /// Ends the use of the frame. Release: a writer that no longer sees the frame may free the list,
  /// so this thread's reads of the list must come before this store.
  func withdraw() {
    fields.pointee.target.store(.none, ordering: .releasing)  // order: withdrawal
  }

  /// Protects a registration. The caller then executes the light fence and checks the slot.
  func setHazard(_ token: Token) {
    fields.pointee.hazard.store(token, ordering: .releasing)  // order: removal
  }

  /// Release: the effects of the delegate happen before a removal sees that the hazard is gone.
  func clearHazard() {
    // order: call_ends
    fields.pointee.hazard.store(.none, ordering: .releasing)  //~ hazard_cleared_relaxed
  }

  // MARK: - For all threads

  /// The target and the hazard of the frame; nil if the frame is not in use.
  var published: (target: Target, hazard: Token)? {
    // Acquire: the two loads pair with the releases in `withdraw` and `clearHazard`, so that the
    // effects of the delegate happen before the reader's next steps.
    let target = fields.pointee.target.load(ordering: .acquiring)  // order: frame
    if target.isNone { return nil }
    return (target, fields.pointee.hazard.load(ordering: .acquiring))  // order: call_ends
  }
}

/// The target of a frame, which is the address of a slot with flags in its low bits. An address of
/// a slot has only zeros there. The flags encode the kind of work, and whether the invocation
/// executes full fences.
struct Target: RawRepresentable, AtomicRepresentable {
  let rawValue: UInt

  init(rawValue: UInt) { self.rawValue = rawValue }

  static var none: Target { Target(rawValue: 0) }

  private static let kind: UInt = 3
  private static let fenced: UInt = 4

  static func invocation(_ slot: UnsafeMutableRawPointer) -> Target {
    Target(rawValue: UInt(bitPattern: slot))
  }

  static func run(_ slot: UnsafeMutableRawPointer) -> Target {
    Target(rawValue: UInt(bitPattern: slot) | 1)
  }

  /// A lookup in the names of the broadcaster in a slot.
  static func lookUp(_ slot: UnsafeMutableRawPointer) -> Target {
    Target(rawValue: UInt(bitPattern: slot) | 2)
  }

  /// A call to a watch's function.
  static var watch: Target { Target(rawValue: 3) }

  var isNone: Bool { rawValue == 0 }
  var isInvocation: Bool { rawValue & Self.kind == 0 }
  var isRun: Bool { rawValue & Self.kind == 1 }

  /// Whether this is an invocation that may execute light fences.
  var isBiased: Bool { rawValue & Self.fenced == 0 }
  var fenced: Target { Target(rawValue: rawValue | Self.fenced) }

  /// The slot of the target. The target of a watch has no slot.
  var slot: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: rawValue & ~(Self.kind | Self.fenced)).unsafelyUnwrapped
  }

  /// Whether two targets mean the same kind of work on the same slot, regardless of their fences.
  static func == (a: Target, b: Target) -> Bool { (a.rawValue ^ b.rawValue) & ~fenced == 0 }
}
