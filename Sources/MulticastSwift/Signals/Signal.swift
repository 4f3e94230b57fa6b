import CMulticast
import MulticastRuntime
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
/// or until the signal ends. Any thread may use a signal at any time, and invoking takes no lock,
/// unless it replays.
public final class Signal<Event: Sendable>: Sendable {
  @usableFromInline let handlers: MulticastDelegate<Handler<Event>>
  @usableFromInline let replays: Bool
  let losses = Losses()

  /// A signal without closures.
  ///
  /// - Parameters:
  ///   - count: How many of the last events a closure or stream gets when it is added, before all
  ///     others, whatever other threads invoke meanwhile. 1: the current value.
  ///   - label: A name for people, in ``debugDescription``; its first 63 bytes.
  ///   - listenersChanged: Called with true when the first closure or stream has been added, and
  ///     with false when the last one has been removed: for a source that runs only while it has
  ///     listeners.
  /// - Complexity: O(1).
  public init(
    replaying count: Int = 0, label: String? = nil,
    listenersChanged: (@Sendable (_ hasListeners: Bool) -> Void)? = nil
  ) {
    var options = Multicast.Options.default
    options.replay = UInt32(clamping: count)
    replays = options.replay > 0
    if !replays { options.flags = MULTICAST_VISIT_ONLY }
    handlers = MulticastDelegate(&options, label: label, listenersChanged: listenersChanged)
  }

  /// How many closures there are, paused ones included.
  ///
  /// - Complexity: O(1).
  public var count: Int { handlers.count }

  /// Whether there are none.
  ///
  /// - Complexity: O(1).
  public var isEmpty: Bool { count == 0 }

  /// How many events were lost, counted for each closure or stream: a delivery or the buffer of a
  /// stream was full, or the delivery was cleared or ended.
  ///
  /// - Complexity: O(1).
  public var lostCount: Int { losses.count }

  /// Calls all closures with an event.
  ///
  /// A closure that is removed before its call begins is not called. Invocations nest 256 deep on a
  /// thread. A deeper one ends the program, with a message.
  ///
  /// - Returns: How many were called, or are going to be at their places.
  /// - Complexity: O(closures). No lock, and no allocation, unless the signal replays.
  @inlinable
  @discardableResult
  public func invoke(_ event: Event) -> Int {
    if replays { return invokeAndKeep(event) }
    var called = 0
    handlers.visit { handler in
      if handler.receive(event) { called += 1 }
      return true
    }
    return called
  }

  @usableFromInline
  func invokeAndKeep(_ event: Event) -> Int { invokeAndKeep(event, nil) }

  /// Hands the event over to the core, which keeps it for closures to come.
  ///
  /// - Parameter full: Gets the streams that have no room; nil: they lose an event.
  func invokeAndKeep(_ event: Event, _ full: FullChannels<Event>?) -> Int {
    let kept = KeptEvent(event, full)
    var how = Multicast.Invocation.default
    how.payload = UnsafeRawPointer(Unmanaged.passRetained(kept).toOpaque())
    how.release = { kept, _ in swift_release(UnsafeMutableRawPointer(mutating: kept)) }
    return withExtendedLifetime(self) {
      let called = checkedCount(handlers.target.invoke(with: &how, outcome: nil))
      return max(0, called - kept.refusals.load(ordering: .relaxed))
    }
  }

  /// Removes all closures, and waits until no other thread is in a call of one.
  ///
  /// - Returns: How many.
  /// - Complexity: O(closures).
  @discardableResult
  public func removeAll() -> Int { handlers.removeAll() }

  /// Watches the calls of this signal; nil: no more.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending``: a function of the last watch still runs.
  /// - Complexity: O(1).
  @discardableResult
  public func setWatch(_ watch: Watch?) -> Removal { handlers.setWatch(watch) }

  /// Adds a handler with the options of the C interface that are not defaults.
  func add(
    _ handler: Handler<Event>, priority: Int, flags: UInt32 = 0, _ lifetime: Lifetime? = nil,
    _ label: String? = nil
  ) -> Registration {
    var options = Multicast.AddOptions.default
    options.priority = Int32(clamping: priority)
    options.flags = flags
    return withExtendedLifetime(self) {
      handlers.add(handler, &options, lifetime, label, function: replays ? receiveKept : nil)
    }
  }
}

extension Signal where Event == Void {
  /// Calls all closures.
  ///
  /// - Complexity: As ``invoke(_:)``.
  @inlinable
  @discardableResult
  public func invoke() -> Int { invoke(()) }
}

extension Signal: CustomDebugStringConvertible {
  /// The delegates with their labels, and which thread is in which call.
  ///
  /// - Complexity: O(closures).
  public var debugDescription: String { handlers.debugDescription }
}
