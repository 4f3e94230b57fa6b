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
  let losses = LossCounter()

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
    if replays { return invokeAndRecord(event) }
    var called = 0
    handlers.visit { handler in
      if handler.receive(event) { called += 1 }
      return true
    }
    return called
  }

  @usableFromInline
  func invokeAndRecord(_ event: Event) -> Int { invokeAndRecord(event, nil) }

  /// Hands the event over to the core, which keeps it for closures to come.
  ///
  /// - Parameter full: Gets the streams that have no room; nil: they lose an event.
  func invokeAndRecord(_ event: Event, _ full: FullChannels<Event>?) -> Int {
    let kept = ReplayEvent(event, full)
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
      handlers.add(handler, &options, lifetime, label, function: replays ? receiveReplayEvent : nil)
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

extension Signal {
  /// Adds a closure, last among the closures of its priority.
  ///
  /// - Parameters:
  ///   - priority: Higher is called first. Of the range of `Int32`.
  ///   - place: Where the closure is called.
  ///   - once: Whether the closure is called once at most. It is removed as its call begins.
  ///   - lifetime: Its end removes the closure.
  ///   - label: A name for people, in ``debugDescription`` and ``Watch``; its first 63 bytes.
  ///   - body: The closure.
  /// - Returns: The registration; not live if there is no memory, or the lifetime has ended.
  /// - Complexity: O(1), amortized; O(closures) if the priority is not the lowest.
  @discardableResult
  public func add(
    priority: Int = 0, on place: Place = .notifier, once: Bool = false, lifetime: Lifetime? = nil,
    label: String? = nil, _ body: @escaping @Sendable (Event) -> Void
  ) -> Registration {
    let isHere = if case .notifier = place { true } else { false }
    let handler = Handler(place: isHere ? nil : place, once: once, losses, body)
    return add(
      handler, priority: priority, flags: isHere && once ? MULTICAST_ONCE : 0, lifetime, label)
  }

  /// Adds a closure that is called on the main actor, later.
  ///
  /// - Parameters: As those of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func add(
    priority: Int = 0, on place: MainPlace, once: Bool = false, lifetime: Lifetime? = nil,
    label: String? = nil, _ body: @escaping @MainActor (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place.place, once: once, lifetime: lifetime, label: label) {
      event in MainActor.assumeIsolated { body(event) }
    }
  }

  /// Adds a closure that is called once at most, with the next event.
  ///
  /// - Parameters: As those of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func once(
    priority: Int = 0, on place: Place = .notifier, lifetime: Lifetime? = nil,
    label: String? = nil, _ body: @escaping @Sendable (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place, once: true, lifetime: lifetime, label: label, body)
  }

  /// Adds a closure that is called once at most, on the main actor.
  ///
  /// - Parameters: As those of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func once(
    priority: Int = 0, on place: MainPlace, lifetime: Lifetime? = nil, label: String? = nil,
    _ body: @escaping @MainActor (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place, once: true, lifetime: lifetime, label: label, body)
  }

  /// Adds an async closure, which a task of its own calls with one event after the other.
  ///
  /// ```swift
  /// titleDidChange.add { await database.save(title: $0) }
  /// ```
  ///
  /// When its registration is removed, it is not called any more; the removal does not wait for a
  /// call that runs.
  ///
  /// - Parameters:
  ///   - priority: Higher gets an event first.
  ///   - bufferingPolicy: Which events wait while a call runs. Others are lost, and counted in
  ///     ``lostCount``, unless they come by ``send(_:isolation:)``.
  ///   - lifetime: Its end removes the closure.
  ///   - label: A name for people; its first 63 bytes.
  ///   - body: The closure.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func add(
    priority: Int = 0, bufferingPolicy: BufferingPolicy = .unbounded, lifetime: Lifetime? = nil,
    label: String? = nil, _ body: @escaping @Sendable (Event) async -> Void
  ) -> Registration {
    let channel = Channel<Event>(bufferingPolicy)
    let registration = add(
      Handler(channel, losses), priority: priority, lifetime, label)
    Task {
      while let event = await channel.next(), registration.isValid { await body(event) }
    }
    return registration
  }
}

extension Signal {
  /// Which events wait while a stream's consumer is busy: all, the newest or the oldest ones.
  public typealias BufferingPolicy = AsyncStream<Event>.Continuation.BufferingPolicy

  /// The events from now on, for `for await`. If the signal replays, it begins with the last ones.
  ///
  /// It ends when the task that iterates is cancelled, when the stream is given up, when all
  /// closures are removed, or when the signal ends. Events that come faster than they are taken
  /// wait in a buffer; events that do not fit are lost, and counted in ``lostCount``. With
  /// ``send(_:isolation:)`` the sender waits instead.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: How many events wait at most, and which ones.
  ///   - priority: Higher gets an event first.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func events(
    bufferingPolicy: BufferingPolicy = .bufferingNewest(64), priority: Int = 0
  ) -> AsyncStream<Event> {
    stream(bufferingPolicy, priority, flags: 0)
  }

  /// The next event; nil if the task is cancelled, all closures are removed, or the signal ends.
  ///
  /// - Parameter isolation: The actor of the caller.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func next(isolation: isolated (any Actor)? = #isolation) async -> Event? {
    var events = stream(.bufferingOldest(1), 0, flags: MULTICAST_NO_REPLAY).makeAsyncIterator()
    return await events.next(isolation: isolation)
  }

  /// Calls all closures with an event, and suspends until each stream and each async closure has
  /// room for it: so these lose nothing.
  ///
  /// If the task is cancelled meanwhile, those without room do not get the event, and it counts as
  /// lost for each of them.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - isolation: The actor of the caller.
  /// - Returns: How many closures and streams have got it, or are going to at their places.
  /// - Complexity: O(closures).
  @discardableResult
  public func send(
    _ event: Event, isolation: isolated (any Actor)? = #isolation
  ) async -> Int {
    let full = FullChannels<Event>()
    let called = replays ? invokeAndRecord(event, full) : offer(event, full)
    return called + (await put(event, into: full.take()))
  }

  private func offer(_ event: Event, _ full: FullChannels<Event>) -> Int {
    var called = 0
    handlers.visit { handler in
      if handler.offer(event, full) { called += 1 }
      return true
    }
    return called
  }

  private func put(_ event: Event, into channels: [Channel<Event>]) async -> Int {
    var taken = 0
    for channel in channels {
      switch await channel.put(event) {
      case .taken: taken += 1
      case .lost: losses.increment()
      case .ended: break
      }
    }
    return taken
  }

  private func stream(
    _ bufferingPolicy: BufferingPolicy, _ priority: Int, flags: UInt32
  ) -> AsyncStream<Event> {
    let channel = Channel<Event>(bufferingPolicy)
    let registration = add(Handler(channel, losses), priority: priority, flags: flags)
    let consumer = Consumer(channel, registration)
    return AsyncStream(
      unfolding: { await consumer.next() }, onCancel: { consumer.cancel() })
  }
}
