import CMulticast
import MulticastRuntime
import Synchronization

/// Calls any number of closures with an event.
///
/// ```swift
/// let titleDidChange = Signal<String>()
/// let registration = titleDidChange.add { print($0) }
/// titleDidChange.invoke("Aria")
/// ```
///
/// Closures are called by priority, then in order of addition. Each closure is called on the
/// invoking thread or at a ``Place``. The signal retains a closure until its registration is
/// removed or the signal is deallocated. Any thread may use a signal at any time. An invocation
/// takes no lock, unless the signal replays events.
public final class Signal<Event: Sendable>: Sendable {
  @usableFromInline let handlers: MulticastDelegate<Handler<Event>>
  @usableFromInline let replays: Bool
  let losses = LossCounter()

  /// Creates a signal without closures.
  ///
  /// - Parameters:
  ///   - count: The number of past events that a new closure or stream receives. It receives them
  ///     before any new event, even if other threads invoke the signal at the same time. With 1,
  ///     the last event acts as the signal's current value.
  ///   - label: A name for ``debugDescription``, at most 63 bytes.
  ///   - listenersChanged: Called with true when the first closure or stream has been added, and
  ///     with false when the last one has been removed. It can start and stop a source that should
  ///     run only while there are listeners.
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

  /// The number of closures, including paused ones.
  ///
  /// - Complexity: O(1).
  public var count: Int { handlers.count }

  /// Whether there are no closures.
  ///
  /// - Complexity: O(1).
  public var isEmpty: Bool { count == 0 }

  /// The number of events that a closure or stream did not receive because a delivery or a stream's
  /// buffer was full, or because a delivery was cleared or deallocated. An event is counted once
  /// for each closure or stream that did not receive it.
  ///
  /// - Complexity: O(1).
  public var lostCount: Int { losses.count }

  /// Calls all closures with an event.
  ///
  /// A closure that is removed before its call begins is not called. Invocations may nest 256
  /// levels deep on a thread. A deeper invocation ends the program with a message.
  ///
  /// - Returns: The number of closures that were called or will be called at their places.
  /// - Complexity: O(closures), without locks or allocations, unless the signal replays.
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

  /// Invokes through the core, which stores the event for closures that are added later.
  ///
  /// - Parameter full: Collects the streams that have no room. If it is nil, these streams lose the
  ///   event.
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

  /// Removes all closures, and waits until no other thread is calling one of them.
  ///
  /// - Returns: The number of closures that were removed.
  /// - Complexity: O(closures).
  @discardableResult
  public func removeAll() -> Int { handlers.removeAll() }

  /// Sets the watch that is notified of this signal's calls. Passing nil removes the watch.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending`` if a function of the previous watch is
  ///   still running.
  /// - Complexity: O(1).
  @discardableResult
  public func setWatch(_ watch: Watch?) -> Removal { handlers.setWatch(watch) }

  /// Adds a handler, with flags of the C interface.
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
  /// - Complexity: Like ``invoke(_:)``.
  @inlinable
  @discardableResult
  public func invoke() -> Int { invoke(()) }
}

extension Signal: CustomDebugStringConvertible {
  /// Lists the closures with their labels, and the calls that are running on each thread.
  ///
  /// - Complexity: O(closures).
  public var debugDescription: String { handlers.debugDescription }
}

extension Signal {
  /// Adds a closure after all other closures with its priority.
  ///
  /// - Parameters:
  ///   - priority: Closures with a higher priority are called first. Values are clamped to `Int32`.
  ///   - place: Where the closure is called.
  ///   - once: Whether the closure is called at most once. It is removed when its call begins.
  ///   - lifetime: The closure is removed when this lifetime ends.
  ///   - label: A name for ``debugDescription`` and ``Watch``, at most 63 bytes.
  ///   - body: The closure.
  /// - Returns: The registration. It is not live if the lifetime has ended or memory runs out.
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

  /// Adds a closure whose calls are scheduled on the main actor.
  ///
  /// - Parameters: See ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func add(
    priority: Int = 0, on place: MainPlace, once: Bool = false, lifetime: Lifetime? = nil,
    label: String? = nil, _ body: @escaping @MainActor (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place.place, once: once, lifetime: lifetime, label: label) {
      event in MainActor.assumeIsolated { body(event) }
    }
  }

  /// Adds a closure that is called at most once, with the next event.
  ///
  /// - Parameters: See ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func once(
    priority: Int = 0, on place: Place = .notifier, lifetime: Lifetime? = nil,
    label: String? = nil, _ body: @escaping @Sendable (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place, once: true, lifetime: lifetime, label: label, body)
  }

  /// Adds a closure that is called at most once, on the main actor.
  ///
  /// - Parameters: See ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  @discardableResult
  public func once(
    priority: Int = 0, on place: MainPlace, lifetime: Lifetime? = nil, label: String? = nil,
    _ body: @escaping @MainActor (Event) -> Void
  ) -> Registration {
    add(priority: priority, on: place, once: true, lifetime: lifetime, label: label, body)
  }

  /// Adds an async closure, which a task calls with one event at a time.
  ///
  /// ```swift
  /// titleDidChange.add { await database.save(title: $0) }
  /// ```
  ///
  /// After its registration has been removed, the closure is no longer called. The removal does not
  /// wait for a running call.
  ///
  /// - Parameters:
  ///   - priority: Closures with a higher priority receive an event first.
  ///   - bufferingPolicy: Which events are buffered while a call is running. Other events are lost,
  ///     and counted in ``lostCount``, unless they were sent by ``send(_:isolation:)``.
  ///   - lifetime: The closure is removed when this lifetime ends.
  ///   - label: A name for debugging output, at most 63 bytes.
  ///   - body: The closure.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
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
  /// Which events a stream buffers while its consumer is busy: all, the newest, or the oldest.
  public typealias BufferingPolicy = AsyncStream<Event>.Continuation.BufferingPolicy

  /// Returns a stream of all future events, for use with `for await`. If the signal replays, the
  /// stream begins with past events.
  ///
  /// The stream ends when the iterating task is cancelled, when the stream or the signal is
  /// deallocated, or when all closures are removed. Events are buffered until the consumer takes
  /// them. Events that do not fit into the buffer are lost, and counted in ``lostCount``. Events
  /// from ``send(_:isolation:)`` are not lost in this way, because it waits for room.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: How many events are buffered, and which ones.
  ///   - priority: Streams and closures with a higher priority receive an event first.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func events(
    bufferingPolicy: BufferingPolicy = .bufferingNewest(64), priority: Int = 0
  ) -> AsyncStream<Event> {
    stream(bufferingPolicy, priority, flags: 0)
  }

  /// Waits for the next event. Returns nil if the task is cancelled, all closures are removed, or
  /// the signal is deallocated.
  ///
  /// - Parameter isolation: The caller's actor.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func next(isolation: isolated (any Actor)? = #isolation) async -> Event? {
    var events = stream(.bufferingOldest(1), 0, flags: MULTICAST_NO_REPLAY).makeAsyncIterator()
    return await events.next(isolation: isolation)
  }

  /// Calls all closures with an event, and suspends until every stream and async closure has room
  /// for it, so that none of them loses an event.
  ///
  /// If the task is cancelled while it is suspended, the streams and async closures that have no
  /// room do not receive the event. The event is counted in ``lostCount`` for each of them.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - isolation: The caller's actor.
  /// - Returns: The number of closures and streams that have received the event or will receive it
  ///   at their places.
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
