import Dispatch

/// Connects notifiers and observers that share nothing but a protocol.
///
/// ```swift
/// protocol UpdateTitle: AnyObject, Sendable { func updateWithNewTitle(title: String) }
///
/// Broadcaster.shared.register(controller, for: (any UpdateTitle).self, on: .main)
/// Broadcaster.shared.notify((any UpdateTitle).self) { $0.updateWithNewTitle(title: "Aria") }
/// ```
///
/// Observers are objects, and are held weakly: an observer that has ended is not called. Any thread
/// may use a broadcaster at any time.
public final class Broadcaster: Sendable {
  /// The broadcaster of the process.
  public static let shared = Broadcaster()

  /// For each type an `Observers` of it.
  private let observers = Locked<[ObjectIdentifier: any AnyObject & Sendable]>([:])

  /// A broadcaster that shares nothing with others.
  public init() {}

  /// Registers an observer of a protocol, at one place once at most.
  ///
  /// - Parameters:
  ///   - observer: An object.
  ///   - type: The protocol.
  ///   - place: Where the observer is called.
  @discardableResult
  public func register<P: Sendable>(_ observer: P, for type: P.Type, on place: Place = .notifier)
    -> Registration
  {
    observers(of: type).add(observer, at: place)
  }

  /// Unregisters an observer of a protocol from all places, and waits until no other thread is in a
  /// call of it.
  ///
  /// - Returns: False if the observer was not registered.
  @discardableResult
  public func unregister<P: Sendable>(_ observer: P, for type: P.Type) -> Bool {
    observers(of: type).groups.reduce(false) { $1.observers.removeEvery(observer) || $0 }
  }

  /// Unregisters all observers of a protocol, and waits until no other thread is in a call of one.
  ///
  /// - Returns: How many.
  @discardableResult
  public func unregisterAll<P: Sendable>(_ type: P.Type) -> Int {
    observers(of: type).groups.reduce(0) { $0 + $1.observers.removeAll() }
  }

  /// Notifies the observers of a protocol, each at its place. Observers whose place is the thread
  /// that notifies are called first.
  ///
  /// An observer that is unregistered before its call begins is not called.
  ///
  /// - Parameters:
  ///   - type: The protocol.
  ///   - body: Called with each observer.
  public func notify<P: Sendable>(_ type: P.Type, _ body: @escaping @Sendable (P) -> Void) {
    for group in observers(of: type).groups { group.notify(at: group.place, body) }
  }

  /// Notifies all observers of a protocol on the main actor, whatever their places: for protocols
  /// of the main actor. Such a protocol inherits from `Sendable`.
  ///
  /// - Parameters:
  ///   - type: The protocol.
  ///   - body: Called with each observer.
  public func notify<P: Sendable>(
    _ type: P.Type, onMainActor body: @escaping @MainActor @Sendable (P) -> Void
  ) {
    for group in observers(of: type).groups {
      group.notify(at: .main) { observer in
        // The main queue is the executor of the main actor.
        MainActor.assumeIsolated { body(observer) }
      }
    }
  }

  private func observers<P: Sendable>(of type: P.Type) -> Observers<P> {
    observers.withLock { observers in
      if let known = observers[ObjectIdentifier(type)] {
        return unsafeDowncast(known, to: Observers<P>.self)
      }
      let new = Observers<P>()
      observers[ObjectIdentifier(type)] = new
      return new
    }
  }
}

/// The observers of one protocol: a group for each place.
private final class Observers<P: Sendable>: Sendable {
  struct Group: Sendable {
    let place: Place
    let observers = MulticastDelegate<P>()

    func notify(at place: Place, _ body: @escaping @Sendable (P) -> Void) {
      if case .notifier = place {
        observers.invoke(body)
        return
      }
      let registrations = observers.registrations()
      if registrations.isEmpty { return }
      _ = place.perform {
        for registration in registrations { MulticastDelegate<P>.visit(registration, body) }
      }
    }
  }

  // The first group is for the notifier's thread. Calls under the lock run no code of others: an
  // add does not end an object, and `mayHaveDelegates` does not look for objects that have ended.
  private let list = Locked<[Group]>([Group(place: .notifier)])

  var groups: [Group] { list.withLock { $0 } }

  func add(_ observer: P, at place: Place) -> Registration {
    list.withLock { groups in
      if let group = groups.first(where: { $0.place.isSame(as: place) }) {
        return group.observers.add(observer, isUnique: true)
      }
      // Unused places go when another place comes.
      groups = [groups[0]] + groups.dropFirst().filter(\.observers.mayHaveDelegates)
      groups.append(Group(place: place))
      return groups.last!.observers.add(observer, isUnique: true)
    }
  }
}
