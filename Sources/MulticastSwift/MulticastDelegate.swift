import CMulticast
import MulticastRuntime
import Synchronization

/// Any number of delegates of one protocol, which are called together.
///
/// ```swift
/// protocol SongListener: AnyObject { func didChangeTitle(_ title: String) }
///
/// let listeners = MulticastDelegate<any SongListener>()
/// listeners.add(window)
/// listeners.invoke { $0.didChangeTitle("Aria") }
/// ```
///
/// Delegates are held weakly, or strongly by choice. They are called by priority, then in the order
/// in which they were added. A delegate may add, remove and invoke. An invocation does not call
/// delegates that are added meanwhile, or that are removed before their call begins.
///
/// Any thread may use a multicast at any time, and an invocation takes no lock: this type is
/// `Sendable` if `P` is. A protocol is if it inherits from `Sendable`, as each protocol on a global
/// actor should.
///
/// Each weak delegate takes about 100 bytes. Calls are fastest for protocols that inherit from
/// `AnyObject`.
public final class MulticastDelegate<P> {
  /// How delegates are held.
  public enum Reference: Hashable, Sendable {
    /// Delegates may end at any time, and are not called any more then.
    case weak
    /// Delegates stay until they are removed, or until the multicast ends. They may be values.
    case strong
  }

  @usableFromInline let target: Multicast

  /// How delegates are held.
  public let reference: Reference

  /// When the next delegates that have ended are removed.
  private let pruneSchedule = PruneSchedule()
  /// Members that few multicasts use.
  let placesAndWatch = AtomicLazyReference<PlacesAndWatch>()

  /// A multicast with these delegates.
  ///
  /// - Parameters:
  ///   - delegates: The first delegates, in order.
  ///   - reference: How all delegates are held.
  ///   - label: A name for people, in ``debugDescription``; its first 63 bytes.
  ///   - listenersChanged: Called with true when the first delegate has been added, and with false
  ///     when the last one has been removed, on the thread that adds or removes: for a source that
  ///     runs only while it has listeners. A weak delegate that has been deallocated counts until
  ///     the multicast detects that. See ``prune()``.
  /// - Complexity: O(delegates).
  public init(
    _ delegates: [P] = [], reference: Reference = .weak, label: String? = nil,
    listenersChanged: (@Sendable (_ hasListeners: Bool) -> Void)? = nil
  ) {
    var options = Multicast.Options.default
    if reference == .weak {
      // With these functions here a delegate takes no memory for them.
      options.flags = MULTICAST_VISIT_ONLY
      options.lockContext = WeakReference.lock
      options.unlockContext = WeakReference.unlock
      options.releaseContext = WeakReference.release
    }
    target = Multicast.create(&options, label: label, listenersChanged: listenersChanged)
    self.reference = reference
    for delegate in delegates { add(delegate) }
  }

  /// A strong multicast for a signal.
  init(_ options: inout Multicast.Options, label: String?, listenersChanged: ListenersChanged?) {
    target = Multicast.create(&options, label: label, listenersChanged: listenersChanged)
    reference = .strong
  }

  // Every use of `target` keeps `self` until it is over, so no invocation is running here on
  // another thread. An invocation may run on this thread, in a call that gave up the last
  // reference. It calls no further delegate, and releases each delegate when its call has returned.
  deinit {
    if let placesAndWatch = placesAndWatch.load() {
      placesAndWatch.watch.replace(with: nil, of: target)
    }
    target.destroy(withinNanoseconds: 0)
  }

  // MARK: - Adding

  /// Adds a delegate, last among the delegates of its priority.
  ///
  /// It may remove weak delegates that have ended, and be the one that releases them.
  ///
  /// - Parameters:
  ///   - delegate: The delegate. If the multicast is ``Reference/weak``, it must be an object.
  ///   - priority: Higher is called first. Of the range of `Int32`.
  ///   - isUnique: Moves a delegate that was added before to the end.
  ///   - once: Whether the delegate is called once at most. It is removed as its call begins.
  ///   - lifetime: Its end removes the delegate.
  ///   - label: A name for people, in ``debugDescription`` and ``Watch``; its first 63 bytes.
  /// - Returns: The registration; not live if there is no memory, or the lifetime has ended.
  /// - Complexity: O(1), amortized; O(delegates) if `isUnique`, or if the priority is not the
  ///   lowest.
  @discardableResult
  public func add(
    _ delegate: P, priority: Int = 0, isUnique: Bool = false, once: Bool = false,
    lifetime: Lifetime? = nil, label: String? = nil
  ) -> Registration {
    var options = Multicast.AddOptions.default
    options.priority = Int32(clamping: priority)
    options.flags = (isUnique ? MULTICAST_UNIQUE : 0) | (once ? MULTICAST_ONCE : 0)
    return add(delegate, &options, lifetime, label)
  }

  /// As the function above, with options of the C interface. It sets those of the context.
  func add(
    _ delegate: P, _ options: inout Multicast.AddOptions, _ lifetime: Lifetime?, _ label: String?,
    function: Multicast.Function? = nil
  ) -> Registration {
    if let lifetime { options.lifetime = lifetime.handle }
    defer { withExtendedLifetime(lifetime) {} }
    guard let label else { return add(delegate, &options, function) }
    return label.withCString {
      options.label = $0
      return add(delegate, &options, function)
    }
  }

  /// - Parameter function: In place of that of the delegate's words.
  private func add(
    _ delegate: P, _ options: inout Multicast.AddOptions, _ function: Multicast.Function?
  ) -> Registration {
    // At the end, not around the body: a closure would take longer than the add.
    defer { withExtendedLifetime(delegate) { withExtendedLifetime(self) {} } }
    var token = Multicast.Token()
    guard let object = DelegateRepresentation.object(of: delegate) else {
      if reference == .weak { Self.refuse(delegate) }
      let context = Unmanaged.passRetained(ValueBox(delegate)).toOpaque()
      options.release = swift_release
      // If this fails, it has called `release`.
      let box = Multicast.Delegate(function: multicast_swift_value, context: context)
      target.add(box, options: &options, token: &token)
      return Registration(token)
    }
    let function = function ?? DelegateRepresentation.function(of: delegate, object)
    if reference == .strong {
      let context = Unmanaged.passRetained(object).toOpaque()
      options.release = swift_release
      let owned = Multicast.Delegate(function: function, context: context)
      target.add(owned, options: &options, token: &token)
      return Registration(token)
    }
    let context = WeakReference.retain(object)
    let owned = Multicast.Delegate(function: function, context: context)
    let status = target.add(owned, options: &options, token: &token)
    if status.rawValue < 0 { WeakReference.release(context) }
    if pruneSchedule.isDueAfterAdd() { pruneSchedule.reset(to: prunedCount()) }
    return Registration(token)
  }

  private func prunedCount() -> Int {
    prune()
    return Int(target.count)
  }

  private static func refuse(_ delegate: P) -> Never {
    fatalError(
      """
      MulticastSwift: a delegate of MulticastDelegate<\(P.self)> has to be an object, unless the \
      multicast is .strong: \(type(of: delegate as Any)) is a value
      """)
  }

  // MARK: - Removing

  /// Removes the first registration of this delegate, and waits until no other thread is in a call
  /// of it. Inside a call of it, it does not wait.
  ///
  /// - Returns: False if there is none, or if the delegate is a value.
  /// - Complexity: O(delegates); O(1), amortized, for large multicasts.
  @discardableResult
  public func remove(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.remove($0).rawValue >= 0 } ?? false
  }

  /// Removes all registrations of this delegate, and waits as ``remove(_:)`` does.
  ///
  /// - Returns: False if there is none, or if the delegate is a value.
  /// - Complexity: O(delegates).
  @discardableResult
  public func removeEvery(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.removeEvery($0).rawValue >= 0 } ?? false
  }

  /// Removes the delegate at a position in the order of invocation, and waits as ``remove(_:)``
  /// does.
  ///
  /// - Parameter index: 0 is the first. Counts paused delegates, too.
  /// - Returns: False if there are not that many.
  /// - Complexity: O(delegates).
  @discardableResult
  public func remove(at index: Int) -> Bool {
    withExtendedLifetime(self) {
      prune()
      return index >= 0 && target.remove(at: index).rawValue >= 0
    }
  }

  /// Removes all delegates, and waits as ``remove(_:)`` does.
  ///
  /// - Returns: How many.
  /// - Complexity: O(delegates).
  @discardableResult
  public func removeAll() -> Int {
    withExtendedLifetime(self) { max(0, Int(target.removeAll())) }
  }

  /// Removes weak delegates that have ended.
  ///
  /// You need not call it: such delegates are removed when their call would begin, and now and then
  /// when others are added. Until then each keeps its memory, but no object that it refers to.
  ///
  /// - Returns: How many.
  /// - Complexity: O(delegates).
  @discardableResult
  public func prune() -> Int {
    withExtendedLifetime(self) { reference == .strong ? 0 : max(0, Int(target.prune())) }
  }

  /// Passes the delegate as it was added to `body`; nil if it is a value, or was never added.
  @inline(__always)
  func withEqual<Result>(to delegate: P, _ body: (Multicast.Delegate) -> Result) -> Result? {
    defer { withExtendedLifetime(delegate) { withExtendedLifetime(self) {} } }
    guard let object = DelegateRepresentation.object(of: delegate) else { return nil }
    let function = DelegateRepresentation.function(of: delegate, object)
    if reference == .strong {
      let context = Unmanaged.passUnretained(object).toOpaque()
      return body(Multicast.Delegate(function: function, context: context))
    }
    return WeakReference.withContext(of: object) {
      body(Multicast.Delegate(function: function, context: $0))
    }
  }
}

// Its fields are constants, and the multicast, which any thread may use. Delegates come to the
// threads that invoke, so they have to be Sendable, too.
extension MulticastDelegate: @unchecked Sendable where P: Sendable {}

extension MulticastDelegate {
  /// The number of delegates, including paused delegates, without delegates that have ended.
  ///
  /// - Complexity: O(delegates).
  public var count: Int {
    withExtendedLifetime(self) {
      prune()
      return max(0, Int(target.count))
    }
  }

  /// Whether there are none.
  ///
  /// - Complexity: O(delegates).
  public var isEmpty: Bool { count == 0 }

  /// Whether the multicast has this delegate, paused or not; false for a value.
  ///
  /// - Complexity: O(delegates).
  public func contains(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.contains($0) } ?? false
  }

  /// All delegates in order, including paused delegates, without delegates that have ended.
  ///
  /// - Complexity: O(delegates).
  public var delegates: [P] {
    withExtendedLifetime(self) {
      var delegates: [P] = []
      _ = enumerateDelegates(target.id) { context, function in
        DelegateRepresentation<P>.withDelegate(context, function) {
          delegates.append($0)
          return true
        }
      }
      return delegates
    }
  }
}

extension MulticastDelegate {
  /// Adds a delegate.
  ///
  /// - Complexity: As ``add(_:priority:isUnique:once:lifetime:label:)``.
  public static func += (multicast: MulticastDelegate, delegate: P) { multicast.add(delegate) }

  /// Removes the first registration of a delegate.
  ///
  /// - Complexity: As ``remove(_:)``.
  public static func -= (multicast: MulticastDelegate, delegate: P) { multicast.remove(delegate) }
}

extension MulticastDelegate {
  /// Watches the calls of this multicast; nil: no more.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending``: a function of the last watch still runs.
  /// - Complexity: O(1).
  @discardableResult
  public func setWatch(_ watch: Watch?) -> Removal {
    withExtendedLifetime(self) {
      placesAndWatch.storeIfNil(PlacesAndWatch()).watch.replace(with: watch, of: target)
    }
  }
}

extension MulticastDelegate: CustomDebugStringConvertible {
  /// The delegates with their labels, and which thread is in which call.
  ///
  /// - Complexity: O(delegates).
  public var debugDescription: String { withExtendedLifetime(self) { target.describedText } }
}

/// The parts of a multicast that few programs use. They are created together, on first use.
final class PlacesAndWatch: Sendable {
  let places = PlaceTable()
  let watch = WatchSlot()
}
