import CMulticast
import MulticastRuntime
import Synchronization

/// Calls any number of delegates of one protocol.
///
/// ```swift
/// protocol SongListener: AnyObject { func didChangeTitle(_ title: String) }
///
/// let listeners = MulticastDelegate<any SongListener>()
/// listeners.add(window)
/// listeners.invoke { $0.didChangeTitle("Aria") }
/// ```
///
/// Delegates are held weakly by default. They are called by priority, then in order of addition.
/// During its call, a delegate may add, remove and invoke. An invocation does not call delegates
/// that are added while it runs, or delegates that are removed before their call begins.
///
/// Any thread may use a multicast at any time, and an invocation takes no lock. This type is
/// `Sendable` if the protocol inherits from `Sendable`. A protocol that is isolated to a global
/// actor should inherit from `Sendable`, too.
///
/// Each weak delegate uses about 100 bytes. Calls are fastest if the protocol inherits from
/// `AnyObject`.
public final class MulticastDelegate<P> {
  /// How delegates are held.
  public enum Reference: Hashable, Sendable {
    /// Delegates are objects and are not kept alive. A delegate that has been deallocated is not
    /// called.
    case weak
    /// Delegates are kept alive until they are removed or the multicast is deallocated. They may be
    /// values.
    case strong
  }

  @usableFromInline let target: Multicast

  /// How delegates are held.
  public let reference: Reference

  /// Determines which adds also remove deallocated delegates.
  private let pruneSchedule = PruneSchedule()
  let placesAndWatch = AtomicLazyReference<PlacesAndWatch>()

  /// Creates a multicast and adds delegates to it.
  ///
  /// - Parameters:
  ///   - delegates: The first delegates, in order.
  ///   - reference: Whether the delegates are held weakly or strongly.
  ///   - label: A name for ``debugDescription``, at most 63 bytes.
  ///   - listenersChanged: Called with true when the first delegate has been added and with false
  ///     when the last one has been removed, on the thread that adds or removes that delegate. It
  ///     can start and stop a source that should run only while there are listeners. A weak
  ///     delegate that has been deallocated counts as a listener until the multicast detects the
  ///     deallocation; see ``prune()``.
  /// - Complexity: O(delegates).
  public init(
    _ delegates: [P] = [], reference: Reference = .weak, label: String? = nil,
    listenersChanged: (@Sendable (_ hasListeners: Bool) -> Void)? = nil
  ) {
    var options = Multicast.Options.default
    if reference == .weak {
      // Setting these functions once for the whole multicast saves memory for each delegate.
      options.flags = MULTICAST_VISIT_ONLY
      options.lockContext = WeakReference.lock
      options.unlockContext = WeakReference.unlock
      options.releaseContext = WeakReference.release
    }
    target = Multicast.create(&options, label: label, listenersChanged: listenersChanged)
    self.reference = reference
    for delegate in delegates { add(delegate) }
  }

  /// Creates a signal's strong multicast.
  init(_ options: inout Multicast.Options, label: String?, listenersChanged: ListenersChanged?) {
    target = Multicast.create(&options, label: label, listenersChanged: listenersChanged)
    reference = .strong
  }

  // Every use of `target` retains `self`, so no other thread is invoking the multicast now. But
  // this thread may be inside an invocation in which a delegate has released the last reference.
  // That invocation then calls no further delegates, and releases each delegate when its call has
  // returned.
  deinit {
    if let placesAndWatch = placesAndWatch.load() {
      placesAndWatch.watch.replace(with: nil, of: target)
    }
    target.destroy(withinNanoseconds: 0)
  }

  // MARK: - Adding

  /// Adds a delegate after all other delegates with its priority.
  ///
  /// An add may also remove weak delegates that have been deallocated, and free their memory.
  ///
  /// - Parameters:
  ///   - delegate: The delegate. If the multicast is ``Reference/weak``, it must be an object.
  ///   - priority: Delegates with a higher priority are called first. Values are clamped to
  ///     `Int32`.
  ///   - isUnique: Whether a delegate that is already registered moves to the end.
  ///   - once: Whether the delegate is called at most once. It is removed when its call begins.
  ///   - lifetime: The delegate is removed when this lifetime ends.
  ///   - label: A name for ``debugDescription`` and ``Watch``, at most 63 bytes.
  /// - Returns: The registration. It is not live if the lifetime has ended or memory runs out.
  /// - Complexity: O(1), amortized; O(delegates) if `isUnique` is true or the priority is not the
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

  /// Adds a delegate with options of the C interface. This function sets the options for the
  /// context, the lifetime and the label.
  ///
  /// - Parameter function: The function that represents the delegate, or nil for the usual
  ///   function.
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

  private func add(
    _ delegate: P, _ options: inout Multicast.AddOptions, _ function: Multicast.Function?
  ) -> Registration {
    // Use `defer`, because wrapping the body in a closure would take longer than the add itself.
    defer { withExtendedLifetime(delegate) { withExtendedLifetime(self) {} } }
    var token = Multicast.Token()
    guard let object = DelegateRepresentation.object(of: delegate) else {
      if reference == .weak { Self.refuse(delegate) }
      let context = Unmanaged.passRetained(ValueBox(delegate)).toOpaque()
      options.release = swift_release
      // A failed add calls `release`.
      let box = Multicast.Delegate(function: multicast_swift_value, context: context)
      target.add(box, options: &options, token: &token)
      return Registration(token)
    }
    let function = function ?? DelegateRepresentation.function(of: delegate, object)
    if reference == .strong {
      let context = Unmanaged.passRetained(object).toOpaque()
      options.release = WeakReference.unlock
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

  /// Removes the first registration of a delegate, and waits until no other thread is calling it.
  /// Inside a call to the delegate, the function does not wait.
  ///
  /// - Returns: False if the delegate is not registered, or is a value.
  /// - Complexity: O(delegates); O(1), amortized, for large multicasts.
  @discardableResult
  public func remove(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.remove($0).rawValue >= 0 } ?? false
  }

  /// Removes all registrations of a delegate, and waits like ``remove(_:)``.
  ///
  /// - Returns: False if the delegate is not registered, or is a value.
  /// - Complexity: O(delegates).
  @discardableResult
  public func removeEvery(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.removeEvery($0).rawValue >= 0 } ?? false
  }

  /// Removes the delegate at a position in the order of invocation, and waits like ``remove(_:)``.
  ///
  /// - Parameter index: The position, starting at 0. Paused delegates have positions, too.
  /// - Returns: False if there is no such position.
  /// - Complexity: O(delegates).
  @discardableResult
  public func remove(at index: Int) -> Bool {
    withExtendedLifetime(self) {
      prune()
      return index >= 0 && target.remove(at: index).rawValue >= 0
    }
  }

  /// Removes all delegates, and waits like ``remove(_:)``.
  ///
  /// - Returns: The number of delegates that were removed.
  /// - Complexity: O(delegates).
  @discardableResult
  public func removeAll() -> Int {
    withExtendedLifetime(self) { max(0, Int(target.removeAll())) }
  }

  /// Removes weak delegates that have been deallocated.
  ///
  /// Calling this function is optional, because invocations and some adds also remove such
  /// delegates. Until a deallocated delegate is removed, its memory is not freed, but it keeps no
  /// other object alive.
  ///
  /// - Returns: The number of delegates that were removed.
  /// - Complexity: O(delegates).
  @discardableResult
  public func prune() -> Int {
    withExtendedLifetime(self) { reference == .strong ? 0 : max(0, Int(target.prune())) }
  }

  /// Calls `body` with the C delegate that `add` registers for this delegate. Returns nil if the
  /// delegate is a value or is known never to have been added.
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

// All fields are constants or handles that any thread may use. Delegates are called on the invoking
// threads, so they must also be Sendable.
extension MulticastDelegate: @unchecked Sendable where P: Sendable {}

extension MulticastDelegate {
  /// The number of delegates, including paused ones but not deallocated ones.
  ///
  /// - Complexity: O(delegates).
  public var count: Int {
    withExtendedLifetime(self) {
      prune()
      return max(0, Int(target.count))
    }
  }

  /// Whether there are no delegates.
  ///
  /// - Complexity: O(delegates).
  public var isEmpty: Bool { count == 0 }

  /// Whether a delegate is registered, even if it is paused. False if the delegate is a value.
  ///
  /// - Complexity: O(delegates).
  public func contains(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.contains($0) } ?? false
  }

  /// All delegates in order. Includes paused delegates, but not deallocated ones.
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
  /// - Complexity: Like ``add(_:priority:isUnique:once:lifetime:label:)``.
  public static func += (multicast: MulticastDelegate, delegate: P) { multicast.add(delegate) }

  /// Removes the first registration of a delegate.
  ///
  /// - Complexity: Like ``remove(_:)``.
  public static func -= (multicast: MulticastDelegate, delegate: P) { multicast.remove(delegate) }
}

extension MulticastDelegate {
  /// Sets the watch that is notified of this multicast's calls. Passing nil removes the watch.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending`` if a function of the previous watch is
  ///   still running.
  /// - Complexity: O(1).
  @discardableResult
  public func setWatch(_ watch: Watch?) -> Removal {
    withExtendedLifetime(self) {
      placesAndWatch.storeIfNil(PlacesAndWatch()).watch.replace(with: watch, of: target)
    }
  }
}

extension MulticastDelegate: CustomDebugStringConvertible {
  /// Lists the delegates with their labels, and the calls that are running on each thread.
  ///
  /// - Complexity: O(delegates).
  public var debugDescription: String { withExtendedLifetime(self) { target.describedText } }
}

/// Two parts of a multicast that few programs use. Both are created when either is first used.
final class PlacesAndWatch: Sendable {
  let places = PlaceTable()
  let watch = WatchSlot()
}
