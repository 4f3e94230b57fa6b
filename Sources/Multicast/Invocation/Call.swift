import MulticastHeader
import Synchronization

/// The action that an invocation performs for each delegate.
protocol Call {
  /// - Returns: false if no further delegate is to be called.
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool

  /// The same call in type-erased form, for the slow path.
  var details: AnyCall.Details { get }
}

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

struct Visit: Call {
  let visitor: multicast_visitor
  let context: UnsafeMutableRawPointer?
  /// Whether this call undoes an earlier visit.
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

/// A call whose type has been erased, so that the slow path is compiled only once.
struct AnyCall {
  struct Details {
    enum Kind: UInt8 { case invocation, visit, undo, enumeration }

    var kind = Kind.invocation
    /// The invocation. A visit or an enumeration has event 0 and no payload.
    var invocation = Invocation(event: 0, payload: nil, size: 0)
    /// The options and the outcome of an invocation with options.
    var dispatch: UnsafeMutablePointer<Dispatch>? = nil
    /// The function that visits a delegate or undoes a visit.
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

  /// The call that `body` receives is valid only until this function returns.
  static func with<C: Call, Result>(_ call: C, _ body: (AnyCall) -> Result) -> Result {
    with(call.details, body)
  }

  static func with<Result>(_ details: Details, _ body: (AnyCall) -> Result) -> Result {
    var details = details
    return withUnsafePointer(to: &details) { body(AnyCall(pointer: $0)) }
  }

  var invocation: Invocation { pointer.pointee.invocation }
  var enumeration: UnsafeMutablePointer<Enumeration>? { pointer.pointee.enumeration }
  var visit: Visit? {
    guard pointer.pointee.kind == .visit else { return nil }
    return Visit(
      visitor: pointer.pointee.visitor.unsafelyUnwrapped, context: pointer.pointee.context)
  }

  /// Whether delegates are invoked or, if they have a queue, their calls are queued.
  var isInvocation: Bool { pointer.pointee.kind == .invocation }
  /// Whether this is an invocation without options.
  var isSimple: Bool { isInvocation && pointer.pointee.dispatch == nil }
  /// Whether the call skips paused delegates and removes delegates with `MULTICAST_ONCE`.
  var isInvocationOrVisit: Bool { pointer.pointee.kind.rawValue < Details.Kind.undo.rawValue }

  /// Whether the call applies to a live registration. An undo or an enumeration also applies to
  /// paused registrations. An enumeration without an enumerator applies only to delegates whose
  /// contexts may be dead. It removes the delegates whose contexts are dead.
  @inline(__always)
  func mayConcern(_ registration: Registration) -> Bool {
    if _fastPath(isInvocationOrVisit) { return !registration.has(Registration.Flags.paused) }
    return enumeration.map { $0.pointee.function != nil } ?? true
      || registration.has(Registration.Flags.special)
  }
  /// Whether the frame's payload is released right after the last delegate. An invocation with
  /// options releases it later, at its end.
  var ownsPayload: Bool { isSimple }

  /// Whether a delegate with details wants this call, given its event mask and its replay.
  @inline(__always)
  func wants(_ details: RegistrationDetails.Address) -> Bool {
    if !isInvocation { return true }
    if let dispatch = pointer.pointee.dispatch,
      // Relaxed is enough. If the invocation has a higher number, it received that number under the
      // lock after `replayed` had been stored, so it reads the stored value.
      details.pointee.replayed.load(ordering: .relaxed) > dispatch.pointee.number
    {
      return false  //~ replayed_and_called
    }
    let events = details.pointee.events
    return events == 0 || pointer.pointee.invocation.isWanted(events)
  }

  /// Calls a live delegate, or passes it to the visitor or the enumerator.
  ///
  /// - Parameter context: The delegate's context, or the strong pointer returned by its lock
  ///   function.
  /// - Returns: false if no further delegate is to be called.
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
    /// The delegate was not called, because it has been removed or another call has claimed it.
    case leftOut
    /// The context was dead, so the delegate has been removed.
    case ended
  }

  /// Calls a delegate that has been found live and is protected by this thread's hazard. If the
  /// context counts references, it is locked during the call. A delegate with `MULTICAST_ONCE` is
  /// removed before the call.
  ///
  /// - Parameter functions: The functions that lock and unlock the context. They are read before
  ///   the call, because the delegate may remove itself.
  func callProtected(
    _ token: Token, _ functions: ContextLock, isOnce: Bool,
    _ body: (_ context: UnsafeMutableRawPointer?, _ isLocked: Bool) -> Void
  ) -> CallResult {
    let context = storage.pointee.context
    // If the functions were read from the multicast, they are correct only if the registration is
    // still live.
    if has(Flags.shared) && !id.isLive(as: token) { return .leftOut }
    Lock.checkNoneIsHeld()
    let strong = functions.lock.map { $0(context) } ?? context
    let isDead = functions.lock != nil && strong == nil
    // The lock function may have removed the delegate, or another thread may have removed it in the
    // meantime.
    let isRemovedNow = isDead || isOnce && has(Flags.once)
    let isOurs = isRemovedNow ? Multicast.claim(token) : id.isLive(as: token)
    if isOurs && !isDead { body(strong, functions.lock != nil) }
    if !isDead { functions.unlock?(strong) }  //~ unlock_forgotten
    return !isOurs ? .leftOut : isDead ? .ended : .called
  }
}
