/// Connects notifiers and observers that share only a protocol.
///
/// ```swift
/// protocol UpdateTitle: AnyObject, Sendable { func updateWithNewTitle(title: String) }
///
/// Broadcaster.shared.register(controller, for: (any UpdateTitle).self, on: .main)
/// Broadcaster.shared.notify((any UpdateTitle).self) { $0.updateWithNewTitle(title: "Aria") }
/// ```
///
/// Observers are objects and are held weakly, so an observer that has been deallocated is not
/// called. Any thread may use a broadcaster at any time.
public final class Broadcaster: Sendable {
  /// The broadcaster shared by the whole process.
  public static let shared = Broadcaster()

  /// Maps each protocol `P` to the `MulticastDelegate<P>` of its observers.
  private let observers = Locked<[ObjectIdentifier: any AnyObject & Sendable]>([:])

  /// Creates a broadcaster that is independent of all others.
  public init() {}

  /// Registers an observer of a protocol. Registering an observer again moves it to the end and
  /// replaces its place.
  ///
  /// - Parameters:
  ///   - observer: An object.
  ///   - type: The protocol.
  ///   - place: Where the observer is called.
  ///   - lifetime: The observer is unregistered when this lifetime ends.
  ///   - label: A name for debugging output.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func register<P: Sendable>(
    _ observer: P, for type: P.Type, on place: Place = .notifier, lifetime: Lifetime? = nil,
    label: String? = nil
  ) -> Registration {
    observers(of: type).add(
      observer, on: place, isUnique: true, lifetime: lifetime, label: label)
  }

  /// Registers an observer of a protocol, to be called on the main actor.
  ///
  /// - Parameters: See ``register(_:for:on:lifetime:label:)-(_,_,Place,_,_)``.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func register<P: Sendable>(
    _ observer: P, for type: P.Type, on place: MainPlace, lifetime: Lifetime? = nil,
    label: String? = nil
  ) -> Registration {
    register(observer, for: type, on: place.place, lifetime: lifetime, label: label)
  }

  /// Unregisters an observer of a protocol, and waits until no other thread is calling it.
  ///
  /// - Returns: False if the observer was not registered.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func unregister<P: Sendable>(_ observer: P, for type: P.Type) -> Bool {
    observers(of: type).removeEvery(observer)
  }

  /// Unregisters all observers of a protocol, and waits until no other thread is calling one of
  /// them.
  ///
  /// - Returns: The number of observers that were unregistered.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func unregisterAll<P: Sendable>(_ type: P.Type) -> Int { observers(of: type).removeAll() }

  /// Notifies the observers of a protocol, calling each at its place.
  ///
  /// An observer that is unregistered before its call begins is not called.
  ///
  /// - Parameters:
  ///   - type: The protocol.
  ///   - body: Called with each observer.
  /// - Returns: The number of observers that were called or will be called at their places.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func notify<P: Sendable>(_ type: P.Type, _ body: @escaping @Sendable (P) -> Void) -> Int {
    observers(of: type).notify(body)
  }

  /// Notifies all observers of a protocol on the main actor, ignoring their places. Use it for
  /// protocols isolated to the main actor, which must inherit from `Sendable`.
  ///
  /// - Parameters:
  ///   - type: The protocol.
  ///   - body: Called with each observer.
  /// - Returns: The number of observers that will be called.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func notify<P: Sendable>(
    _ type: P.Type, onMainActor body: @escaping @MainActor (P) -> Void
  ) -> Int {
    observers(of: type).invoke(on: .main, body)
  }

  /// Calls an async function with each observer of a protocol, one after the other, ignoring their
  /// places. Use it for observers that are actors.
  ///
  /// - Parameters:
  ///   - type: The protocol.
  ///   - isolation: The caller's actor, on which `body` runs.
  ///   - body: Called with each observer.
  /// - Returns: The number of observers that were called.
  /// - Complexity: O(observers of the protocol).
  @discardableResult
  public func notifyAsync<P: Sendable>(
    _ type: P.Type, isolation: isolated (any Actor)? = #isolation, _ body: (P) async -> Void
  ) async -> Int {
    await observers(of: type).invokeAsync(body)
  }

  private func observers<P: Sendable>(of type: P.Type) -> MulticastDelegate<P> {
    observers.withLock { observers in
      if let known = observers[ObjectIdentifier(type)] {
        return unsafeDowncast(known, to: MulticastDelegate<P>.self)
      }
      let new = MulticastDelegate<P>()
      observers[ObjectIdentifier(type)] = new
      return new
    }
  }
}
