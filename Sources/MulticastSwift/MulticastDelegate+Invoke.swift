import CMulticast
import Dispatch

extension MulticastDelegate {
  /// Calls `body` with each delegate, by priority, then in order of addition.
  ///
  /// The error keeps its type only if the closure names the type:
  ///
  /// ```swift
  /// try listeners.invoke { (listener) throws(Refusal) in try listener.prepare() }
  /// ```
  ///
  /// Invocations may nest 256 levels deep on a thread. A deeper invocation ends the program with a
  /// message.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is called.
  /// - Returns: The number of delegates that were called.
  /// - Throws: The error that `body` throws.
  /// - Complexity: O(delegates), without locks or allocations.
  @inlinable @inline(__always)
  @discardableResult
  public func invoke<E: Error>(_ body: (P) throws(E) -> Void) throws(E) -> Int {
    var failure: E?
    // `invoke` does not use `visit`, because the compiler does not inline nested closures. `self`
    // is kept alive, because a delegate may release the last other reference to it.
    let called = withExtendedLifetime(self) {
      visitDelegates(target.id) { context, function in
        DelegateRepresentation<P>.withDelegate(context, function) { delegate in
          do throws(E) {
            try body(delegate)
            return true
          } catch {
            failure = error
            return false
          }
        }
      }
    }
    if let failure { throw failure }
    return checkedCount(called)
  }

  /// Calls `body` with each delegate in order until `body` returns a value other than nil.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is called.
  /// - Returns: The first value other than nil, or nil if `body` returned nil for all delegates.
  /// - Throws: The error that `body` throws.
  /// - Complexity: O(delegates), without locks or allocations.
  @inlinable
  public func first<Answer, E: Error>(_ body: (P) throws(E) -> Answer?) throws(E) -> Answer? {
    var answer: Answer?
    var failure: E?
    visit { delegate in
      do throws(E) {
        answer = try body(delegate)
        return answer == nil
      } catch {
        failure = error
        return false
      }
    }
    if let failure { throw failure }
    return answer
  }

  /// Calls `body` with each delegate until it returns false. Returns the number of calls.
  @inlinable @inline(__always)
  @discardableResult
  func visit(_ body: (P) -> Bool) -> Int {
    // `self` is kept alive, because a delegate may release the last other reference to it.
    withExtendedLifetime(self) {
      checkedCount(
        visitDelegates(target.id) { DelegateRepresentation<P>.withDelegate($0, $1, body) })
    }
  }

  /// Calls `body` with the delegate of one registration, if the registration is live and not
  /// paused. The function is static so that pending calls need not retain the multicast. When the
  /// multicast is deallocated, its registrations end.
  static func visit(_ registration: Registration, _ body: (P) -> Void) {
    let passed = visitDelegate(registration.id) { context, function in
      DelegateRepresentation<P>.withDelegate(context, function) {
        body($0)
        return true
      }
    }
    _ = checkedCount(passed)
  }

  /// The registrations whose delegates an invocation would call at this moment, in order.
  func registrations() -> [Registration] {
    var registrations: [Registration] = []
    visit { _ in
      registrations.append(Registration(Multicast.Token.current))
      return true
    }
    return registrations
  }
}

extension MulticastDelegate where P: Sendable {
  /// Adds a delegate that ``notify(_:)`` calls at a place. ``invoke(_:)`` ignores the place and
  /// calls all delegates on its own thread.
  ///
  /// - Parameters:
  ///   - delegate: The delegate. If the multicast is ``Reference/weak``, it must be an object.
  ///   - place: Where the delegate is called.
  ///   - priority: Delegates with a higher priority are called first.
  ///   - isUnique: Whether adding a delegate again moves it to the end and replaces its place.
  ///   - lifetime: The delegate is removed when this lifetime ends.
  ///   - label: A name for debugging output, up to 63 bytes long.
  /// - Returns: The registration. It is not live if the lifetime has ended or memory runs out.
  /// - Complexity: Like ``add(_:priority:isUnique:once:lifetime:label:)``.
  @discardableResult
  public func add(
    _ delegate: P, on place: Place, priority: Int = 0, isUnique: Bool = false,
    lifetime: Lifetime? = nil, label: String? = nil
  ) -> Registration {
    if case .notifier = place {
      return add(
        delegate, priority: priority, isUnique: isUnique, lifetime: lifetime, label: label)
    }
    let places = placesAndWatch.storeIfNil(PlacesAndWatch()).places
    var options = Multicast.AddOptions.default
    options.priority = Int32(clamping: priority)
    options.flags = isUnique ? MULTICAST_UNIQUE : 0
    // The place is inserted first, so that a notification that finds the registration also finds
    // its place.
    options.events = places.insert(place)
    let registration = add(delegate, &options, lifetime, label)
    places.set(registration, at: options.events)
    return registration
  }

  /// Adds a delegate that ``notify(_:)`` calls on the main actor.
  ///
  /// - Parameters: See ``add(_:on:priority:isUnique:lifetime:label:)``.
  /// - Complexity: Like ``add(_:priority:isUnique:once:lifetime:label:)``.
  @discardableResult
  public func add(
    _ delegate: P, on place: MainPlace, priority: Int = 0, isUnique: Bool = false,
    lifetime: Lifetime? = nil, label: String? = nil
  ) -> Registration {
    add(
      delegate, on: place.place, priority: priority, isUnique: isUnique, lifetime: lifetime,
      label: label)
  }

  /// Calls each delegate at its place, immediately or later.
  ///
  /// A delegate that is removed or paused before its call begins is not called.
  ///
  /// - Parameter body: Called with each delegate.
  /// - Returns: The number of delegates that were called or will be called at their places. A
  ///   delegate whose ``Delivery`` is full is not counted.
  /// - Complexity: O(delegates).
  @discardableResult
  public func notify(_ body: @escaping @Sendable (P) -> Void) -> Int {
    guard let places = placesAndWatch.load()?.places else { return invoke(body) }
    var refused = 0
    let visited = visit { delegate in
      let registration = Registration(Multicast.Token.current)
      if let place = places.place(of: registration) {
        let isTaken = place.perform(for: registration) { Self.visit(registration, body) }
        if !isTaken { refused += 1 }
      } else {
        body(delegate)
      }
      return true
    }
    return visited - refused
  }

  /// Schedules calls to the currently registered delegates on a dispatch queue. Delegates that are
  /// removed or paused before their call begins are not called. Deallocating the multicast removes
  /// all delegates.
  ///
  /// - Parameters:
  ///   - queue: The queue. Each invocation is one block, so a serial queue executes invocations in
  ///     order.
  ///   - body: Called with each delegate.
  /// - Returns: The number of delegates that will be called.
  /// - Complexity: O(delegates).
  @_disfavoredOverload
  @discardableResult
  public func invoke(on queue: DispatchQueue, _ body: @escaping @Sendable (P) -> Void) -> Int {
    let registrations = registrations()
    if registrations.isEmpty { return 0 }
    queue.async { for registration in registrations { Self.visit(registration, body) } }
    return registrations.count
  }

  /// Schedules calls to the currently registered delegates on the main actor. In all other
  /// respects, this function is like ``invoke(on:_:)-(DispatchQueue,_)``.
  ///
  /// - Parameters:
  ///   - place: `.main`.
  ///   - body: Called with each delegate.
  /// - Returns: The number of delegates that will be called.
  /// - Complexity: O(delegates).
  @discardableResult
  public func invoke(on place: MainPlace, _ body: @escaping @MainActor (P) -> Void) -> Int {
    invoke(on: DispatchQueue.main) { delegate in MainActor.assumeIsolated { body(delegate) } }
  }

  /// Calls an async function with each delegate, one after the other. Use it for delegates that are
  /// actors or have async methods.
  ///
  /// ```swift
  /// await listeners.invokeAsync { await $0.didChangeTitle("Aria") }
  /// ```
  ///
  /// The function calls the delegates that are registered when it begins, except those that are
  /// removed or paused before their call begins. A removal does not wait for these calls.
  ///
  /// If the function were named `invoke`, the compiler would prefer this overload in every async
  /// function.
  ///
  /// - Parameters:
  ///   - isolation: The caller's actor, on which `body` runs.
  ///   - body: Called with each delegate. If it throws, no further delegate is called.
  /// - Returns: The number of delegates that were called.
  /// - Throws: The error that `body` throws.
  /// - Complexity: O(delegates).
  @discardableResult
  public func invokeAsync<E: Error>(
    isolation: isolated (any Actor)? = #isolation, _ body: (P) async throws(E) -> Void
  ) async throws(E) -> Int {
    var called = 0
    for registration in registrations() {
      var delegate: P?
      Self.visit(registration) { delegate = $0 }
      guard let delegate else { continue }
      called += 1
      try await body(delegate)
    }
    return called
  }
}
