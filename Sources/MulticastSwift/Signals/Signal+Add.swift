import CMulticast

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
