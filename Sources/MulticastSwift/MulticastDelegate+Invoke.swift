import CMulticast
import Dispatch

extension MulticastDelegate {
  /// Calls `body` with each delegate, by priority, then in the order in which they were added.
  ///
  /// Typed errors need the type in the closure:
  ///
  /// ```swift
  /// try listeners.invoke { (listener) throws(Refusal) in try listener.prepare() }
  /// ```
  ///
  /// Invocations nest 256 deep on a thread. A deeper one ends the program, with a message.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is called.
  /// - Returns: How many were called.
  /// - Throws: What `body` throws.
  /// - Complexity: O(delegates). No lock, and no allocation.
  @inlinable @inline(__always)
  @discardableResult
  public func invoke<E: Error>(_ body: (P) throws(E) -> Void) throws(E) -> Int {
    var failure: E?
    // Not by `visit`: the compiler would not inline one closure that is inside another.
    // The last reference to `self` may be given up inside of a call.
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

  /// The first answer: asks each delegate in order, until one does not return nil.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is asked.
  /// - Returns: The answer; nil if there is none.
  /// - Throws: What `body` throws.
  /// - Complexity: O(delegates). No lock, and no allocation.
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

  /// Passes each delegate to `body`, until it returns false. Returns how many were passed.
  @inlinable @inline(__always)
  @discardableResult
  func visit(_ body: (P) -> Bool) -> Int {
    // The last reference to `self` may be given up inside of a call.
    withExtendedLifetime(self) {
      checkedCount(
        visitDelegates(target.id) { DelegateRepresentation<P>.withDelegate($0, $1, body) })
    }
  }

  /// Passes the delegate of one registration to `body`, if the registration is live and not paused.
  /// The end of the multicast ends the registration: so waiting calls do not keep the multicast.
  static func visit(_ registration: Registration, _ body: (P) -> Void) {
    let passed = visitDelegate(registration.id) { context, function in
      DelegateRepresentation<P>.withDelegate(context, function) {
        body($0)
        return true
      }
    }
    _ = checkedCount(passed)
  }

  /// The registrations that an invocation would call now, in order.
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
  /// Adds a delegate that ``notify(_:)`` calls at a place. (``invoke(_:)`` calls all delegates on
  /// its own thread.)
  ///
  /// - Parameters:
  ///   - delegate: The delegate. If the multicast is ``Reference/weak``, it must be an object.
  ///   - place: Where it is called.
  ///   - priority: Higher is called first.
  ///   - isUnique: Moves a delegate that was added before to the end, and to this place.
  ///   - lifetime: Its end removes the delegate.
  ///   - label: A name for people; its first 63 bytes.
  /// - Returns: The registration; not live if there is no memory, or the lifetime has ended.
  /// - Complexity: As ``add(_:priority:isUnique:once:lifetime:label:)``.
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
    // A notification that finds the registration finds its place.
    options.events = places.insert(place)
    let registration = add(delegate, &options, lifetime, label)
    places.set(registration, at: options.events)
    return registration
  }

  /// Adds a delegate that ``notify(_:)`` calls on the main actor.
  ///
  /// - Parameters: As those of ``add(_:on:priority:isUnique:lifetime:label:)``.
  /// - Complexity: As ``add(_:priority:isUnique:once:lifetime:label:)``.
  @discardableResult
  public func add(
    _ delegate: P, on place: MainPlace, priority: Int = 0, isUnique: Bool = false,
    lifetime: Lifetime? = nil, label: String? = nil
  ) -> Registration {
    add(
      delegate, on: place.place, priority: priority, isUnique: isUnique, lifetime: lifetime,
      label: label)
  }

  /// Calls each delegate at its place: at once, or later.
  ///
  /// A delegate that is removed or paused before its call begins is not called.
  ///
  /// - Parameter body: Called with each delegate.
  /// - Returns: How many were called, or are to be called at their places. A delegate whose
  ///   ``Delivery`` has no room does not count.
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

  /// Calls the delegates later, on a queue: the current delegates, except delegates that are
  /// removed or paused before their call begins. The end of the multicast removes them.
  ///
  /// - Parameters:
  ///   - queue: The queue. Each invocation is one block, so a serial queue executes them in order.
  ///   - body: Called with each delegate.
  /// - Returns: How many are to be called.
  /// - Complexity: O(delegates).
  @_disfavoredOverload
  @discardableResult
  public func invoke(on queue: DispatchQueue, _ body: @escaping @Sendable (P) -> Void) -> Int {
    let registrations = registrations()
    if registrations.isEmpty { return 0 }
    queue.async { for registration in registrations { Self.visit(registration, body) } }
    return registrations.count
  }

  /// Calls the delegates later, on the main actor, as ``invoke(on:_:)-(DispatchQueue,_)`` does.
  ///
  /// - Parameters:
  ///   - place: `.main`.
  ///   - body: Called with each delegate.
  /// - Returns: How many are to be called.
  /// - Complexity: O(delegates).
  @discardableResult
  public func invoke(on place: MainPlace, _ body: @escaping @MainActor (P) -> Void) -> Int {
    invoke(on: DispatchQueue.main) { delegate in MainActor.assumeIsolated { body(delegate) } }
  }

  /// Calls an async function with each delegate, one after the other: for delegates that are
  /// actors, or do something async.
  ///
  /// ```swift
  /// await listeners.invokeAsync { await $0.didChangeTitle("Aria") }
  /// ```
  ///
  /// It passes the delegates that are there when it begins, except those that are removed or paused
  /// before their call begins. A removal does not wait for these calls.
  ///
  /// (It is not named `invoke`: in an async function the compiler would take it for that.)
  ///
  /// - Parameters:
  ///   - isolation: The actor of the caller: `body` runs there.
  ///   - body: Called with each delegate. If it throws, no further delegate is called.
  /// - Returns: How many were called.
  /// - Throws: What `body` throws.
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
