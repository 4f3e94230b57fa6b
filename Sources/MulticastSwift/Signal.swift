import MulticastHeader
import Synchronization

/// Any number of closures that are called with an event.
///
/// ```swift
/// let titleDidChange = Signal<String>()
/// let registration = titleDidChange.add { print($0) }
/// titleDidChange.invoke("Aria")
/// ```
///
/// Closures are called by priority, then in the order in which they were added; each on the thread
/// that invokes, or at a ``Place`` of its own. A closure is kept until its registration is removed,
/// or until the signal ends. Any thread may use a signal at any time, and invoking takes no lock.
public final class Signal<Event: Sendable>: Sendable {
  @usableFromInline let handlers = MulticastDelegate<Handler<Event>>(reference: .strong)
  let losses = Losses()

  /// A signal without closures.
  public init() {}

  /// How many closures there are, paused ones included.
  public var count: Int { handlers.count }

  /// Whether there are none.
  public var isEmpty: Bool { count == 0 }

  /// How many events were lost, counted for each closure or stream: a delivery was full, or the
  /// buffer of a stream.
  public var lostCount: Int { losses.count.load(ordering: .relaxed) }

  /// Adds a closure, last among the closures of its priority.
  ///
  /// - Parameters:
  ///   - priority: Higher is called first.
  ///   - place: Where the closure is called.
  ///   - once: Whether the closure is called once at most. It is removed as its call begins.
  ///   - body: The closure.
  @discardableResult
  public func add(
    priority: Int32 = 0, on place: Place = .notifier, once: Bool = false,
    _ body: @escaping @Sendable (Event) -> Void
  ) -> Registration {
    var options = multicast_add_options_default()
    options.priority = priority
    let handler: Handler<Event>
    if case .notifier = place {
      options.flags = once ? MULTICAST_ONCE : 0
      handler = Handler(place: nil, once: once, body)
    } else {
      handler = Handler(place: place, once: once, body)
    }
    return withExtendedLifetime(self) { handlers.add(handler, options) }
  }

  /// Adds a closure that is called once at most, with the next event.
  @discardableResult
  public func once(
    priority: Int32 = 0, on place: Place = .notifier, _ body: @escaping @Sendable (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place, once: true, body)
  }

  /// Calls all closures with an event.
  ///
  /// A closure that is removed before its call begins is not called.
  ///
  /// - Returns: How many were called, or are going to be at their places.
  @inlinable
  @discardableResult
  public func invoke(_ event: Event) -> Int {
    var called = 0
    handlers.visit { handler in
      if handler.receive(event, from: self) { called += 1 }
      return true
    }
    return called
  }

  /// Removes all closures, and waits until no other thread is in a call of one.
  ///
  /// - Returns: How many.
  @discardableResult
  public func removeAll() -> Int { handlers.removeAll() }
}

extension Signal where Event == Void {
  /// Calls all closures.
  @inlinable
  @discardableResult
  public func invoke() -> Int { invoke(()) }
}

/// A closure of a signal.
@usableFromInline
final class Handler<Event: Sendable>: Sendable {
  @usableFromInline let body: @Sendable (Event) -> Void
  @usableFromInline let isElsewhere: Bool
  /// nil: the thread that invokes.
  private let place: Place?
  /// Of a closure that is called once, at a place.
  private let claim: Claim?

  init(place: Place?, once: Bool, _ body: @escaping @Sendable (Event) -> Void) {
    self.body = body
    self.place = place
    isElsewhere = place != nil
    claim = once && place != nil ? Claim() : nil
  }

  /// Calls the closure, or queues its call. False: the closure does not get the event.
  @inlinable @inline(__always)
  func receive(_ event: Event, from signal: Signal<Event>) -> Bool {
    if isElsewhere { return receiveElsewhere(event, from: signal) }
    body(event)
    return true
  }

  @usableFromInline
  func receiveElsewhere(_ event: Event, from signal: Signal<Event>) -> Bool {
    guard let place else { return false }
    let claimed = claim?.take()
    if claim != nil, claimed == nil { return false }
    let registration = Registration(multicast_token_current())
    // The work must not keep the closure: the closure's place may keep the work.
    let isAccepted = place.perform {
      // If the registration was removed meanwhile, this does nothing.
      MulticastDelegate<Handler<Event>>.visit(registration) { handler in
        if claimed != nil { registration.remove(within: .zero) }
        handler.body(event)
      }
    }
    if !isAccepted { signal.losses.count.add(1, ordering: .relaxed) }
    return isAccepted
  }
}

/// One event at a time is on its way to a closure that is called once.
private final class Claim: Sendable {
  private let isTaken = Atomic(false)

  /// Exists as long as the event is on its way. If a delivery drops the event, another event may be
  /// taken.
  final class Taken: Sendable {
    fileprivate let claim: Claim

    fileprivate init(_ claim: Claim) { self.claim = claim }

    deinit { claim.isTaken.store(false, ordering: .relaxed) }
  }

  /// nil: another event is on its way.
  func take() -> Taken? {
    // One of the threads gets false. Nothing else depends on the flag.
    isTaken.exchange(true, ordering: .relaxed) ? nil : Taken(self)
  }
}

/// A count that closures of the signal refer to, without the signal.
final class Losses: Sendable {
  let count = Atomic(0)
}
