import MulticastHeader
import Synchronization

/// The action of an invocation's loop for each delegate.
protocol Call {
  /// - Returns: false to stop.
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool

  /// The same, as what every function beside that loop takes.
  var details: AnyCall.Details { get }
}

/// `multicast_invoke`: calls the function.
extension Invocation: Call {
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    Lock.checkNoneIsHeld()
    function(context, event, payload, size)
    return true
  }

  var details: AnyCall.Details { AnyCall.Details(self) }
}

/// `multicast_visit`: passes the delegate to the visitor.
struct Visit: Call {
  let visitor: multicast_visitor
  let context: UnsafeMutableRawPointer?
  /// Whether this undoes visits.
  var isUndo = false

  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    var delegate = multicast_delegate(function: function, context: context)
    Lock.checkNoneIsHeld()
    return visitor(self.context, &delegate)
  }

  var details: AnyCall.Details { AnyCall.Details(self) }
}

/// A type-erased call for the slow path, compiled once.
struct AnyCall {
  struct Details {
    enum Kind: UInt8 { case invocation, visit, undo, enumeration }

    var kind = Kind.invocation
    /// Of a visit or an enumeration: of event 0, without a payload.
    var invocation = Invocation(event: 0, payload: nil, size: 0)
    /// Of an invocation with options.
    var dispatch: UnsafeMutablePointer<Dispatch>? = nil
    /// Of a visit, or of its undoing; with its context.
    var visitor: multicast_visitor? = nil
    var context: UnsafeMutableRawPointer? = nil
    var enumeration: UnsafeMutablePointer<Enumeration>? = nil

    init(_ invocation: Invocation, _ dispatch: UnsafeMutablePointer<Dispatch>? = nil) {
      self.invocation = invocation
      self.dispatch = dispatch
    }

    init(_ visit: Visit) {
      kind = visit.isUndo ? .undo : .visit
      visitor = visit.visitor
      context = visit.context
    }

    init(_ enumeration: UnsafeMutablePointer<Enumeration>) {
      kind = .enumeration
      self.enumeration = enumeration
    }
  }

  private let pointer: UnsafePointer<Details>

  /// - Parameter body: Does not keep the call.
  static func with<C: Call, Result>(_ call: C, _ body: (AnyCall) -> Result) -> Result {
    with(call.details, body)
  }

  static func with<Result>(_ details: Details, _ body: (AnyCall) -> Result) -> Result {
    var details = details
    return withUnsafePointer(to: &details) { body(AnyCall(pointer: $0)) }
  }

  /// Of a visit or an enumeration: of event 0, without a payload.
  var invocation: Invocation { pointer.pointee.invocation }
  var enumeration: UnsafeMutablePointer<Enumeration>? { pointer.pointee.enumeration }
  var visit: Visit? {
    guard pointer.pointee.kind == .visit else { return nil }
    return Visit(
      visitor: pointer.pointee.visitor.unsafelyUnwrapped, context: pointer.pointee.context)
  }

  /// Whether delegates are invoked: calls of those that were added with a queue are queued.
  var isInvocation: Bool { pointer.pointee.kind == .invocation }
  /// Whether this is an invocation without options.
  var isSimple: Bool { isInvocation && pointer.pointee.dispatch == nil }
  /// Whether paused delegates are left out, and a delegate that is called once ends with the call.
  var isInvocationOrVisit: Bool { pointer.pointee.kind.rawValue < Details.Kind.undo.rawValue }

  /// Whether a live registration may have to be called or passed. A paused one is, if visits are
  /// undone, or if all are passed. If nothing is passed, delegates with dead contexts are removed.
  @inline(__always)
  func mayConcern(_ registration: Registration) -> Bool {
    if _fastPath(isInvocationOrVisit) { return !registration.has(Registration.Flags.paused) }
    return enumeration.map { $0.pointee.function != nil } ?? true
      || registration.has(Registration.Flags.special)
  }
  /// Whether the payload that the frame retains is released with the last delegate. With options
  /// that happens after the invocation.
  var ownsPayload: Bool { isSimple }

  /// Whether a delegate is called that does not want every call.
  @inline(__always)
  func wants(_ details: RegistrationDetails.Address) -> Bool {
    if !isInvocation { return true }
    if let dispatch = pointer.pointee.dispatch,
      // Relaxed: an invocation that was kept later has taken the stripe's lock.
      details.pointee.replayed.load(ordering: .relaxed) > dispatch.pointee.number
    {
      return false  //~ replayed_and_called
    }
    let events = details.pointee.events
    return events == 0 || pointer.pointee.invocation.isWanted(events)
  }

  /// Calls a delegate that is live, or passes it.
  ///
  /// - Parameter context: That of the delegate, or the strong pointer that its lock has made of it.
  /// - Returns: false to stop.
  func callAsFunction(
    _ registration: Registration, _ token: Token, _ context: UnsafeMutableRawPointer?,
    isLocked: Bool
  ) -> Bool {
    if let enumeration {
      return enumeration.pointee.pass(registration, token, strong: isLocked ? context : nil)
    }
    let function = registration.storage.pointee.function.unsafelyUnwrapped
    guard let visitor = pointer.pointee.visitor else {
      return pointer.pointee.invocation(function, context)
    }
    return Visit(visitor: visitor, context: pointer.pointee.context)(function, context)
  }

  /// Queues a call.
  func enqueue(
    _ registration: Registration, _ token: Token, to queue: Queue, _ frame: Frame
  ) -> Queue.EnqueueResult {
    let invocation = pointer.pointee.invocation
    if let dispatch = pointer.pointee.dispatch {
      return dispatch.pointee.enqueue(token, to: queue, frame)
    }
    if !WaitingCall.holds(invocation.size) { return queue.enqueueLarge(token, invocation, frame) }
    if _fastPath(queue.enqueueInFastPath(registration, token, invocation)) { return .queued }
    return queue.enqueueLocked(token, invocation, sharing: nil, frame)
  }
}

extension Registration {
  enum CallResult {
    case called
    /// Removed meanwhile, or by another call.
    case leftOut
    /// The context is dead, and the delegate was removed for that.
    case ended
  }

  /// Calls a delegate that this thread's hazard protects and that was found live. The context is
  /// locked if it counts references. A delegate that is called once is removed before.
  ///
  /// - Parameter functions: Those that lock and unlock its context. Read before the call: the
  ///   delegate may remove itself.
  func callProtected(
    _ token: Token, _ functions: ContextLock, isOnce: Bool,
    _ body: (_ context: UnsafeMutableRawPointer?, _ isLocked: Bool) -> Void
  ) -> CallResult {
    let context = storage.pointee.context
    // If it is live, functions that are its multicast's are the right ones.
    if has(Flags.shared) && !id.isLive(as: token) { return .leftOut }
    Lock.checkNoneIsHeld()
    let strong = functions.lock.map { $0(context) } ?? context
    let isDead = functions.lock != nil && strong == nil
    // Locking may have removed it, or have taken so long that another thread has.
    let isRemovedNow = isDead || isOnce && has(Flags.once)
    let isOurs = isRemovedNow ? Multicast.claim(token) : id.isLive(as: token)
    if isOurs && !isDead { body(strong, functions.lock != nil) }
    if !isDead { functions.unlock?(strong) }  //~ unlock_forgotten
    return !isOurs ? .leftOut : isDead ? .ended : .called
  }
}
