import MulticastHeader
import MulticastRuntime

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

  @usableFromInline let target: multicast

  /// How delegates are held.
  public let reference: Reference

  /// - Parameters:
  ///   - delegates: The first delegates, in order.
  ///   - reference: How all delegates are held.
  public init(_ delegates: [P] = [], reference: Reference = .weak) {
    target = reference == .weak ? Self.createWeak() : multicast_create()
    self.reference = reference
    for delegate in delegates { add(delegate) }
  }

  /// The multicast has the functions of weak contexts: so a delegate takes no memory for options.
  private static func createWeak() -> multicast {
    var options = multicast_create_options_default()
    options.flags = MULTICAST_VISIT_ONLY
    options.lock_context = WeakReference.lock
    options.unlock_context = WeakReference.unlock
    options.release_context = WeakReference.release
    return multicast_create_with(&options)
  }

  // Every use of `target` keeps `self` until it is over, so no invocation is running here on
  // another thread. An invocation may run on this thread, in a call that gave up the last
  // reference. It calls no further delegate, and releases each delegate when its call has returned.
  deinit { multicast_destroy_within(target, 0) }

  // MARK: - Adding and removing

  /// Adds a delegate, last among the delegates of its priority.
  ///
  /// - Parameters:
  ///   - delegate: The delegate. If the multicast is ``Reference/weak``, it must be an object.
  ///   - priority: Higher is called first.
  ///   - isUnique: Moves a delegate that was added before to the end.
  /// - Returns: The registration; not live if there is no memory.
  @discardableResult
  public func add(_ delegate: P, priority: Int32 = 0, isUnique: Bool = false) -> Registration {
    extendingLifetimes(with: delegate) {
      var options = multicast_add_options_default()
      options.priority = priority
      options.flags = isUnique ? MULTICAST_UNIQUE : 0
      return add(delegate, options)
    }
  }

  /// As ``add(_:priority:isUnique:)``, with options of the C interface. Sets the context's options.
  func add(_ delegate: P, _ options: consuming multicast_add_options) -> Registration {
    let owned: multicast_delegate
    var token = multicast_token()
    switch (reference, Words.object(of: delegate)) {
    case (.weak, let object?):
      let context = WeakReference.context(of: object)
      WeakReference.retain(context)
      owned = multicast_delegate(function: Words.function(of: delegate, object), context: context)
      if multicast_add(target, owned, &options, &token) < 0 { WeakReference.release(context) }
      return Registration(token)
    case (.strong, let object?):
      let context = Unmanaged.passRetained(object).toOpaque()
      owned = multicast_delegate(function: Words.function(of: delegate, object), context: context)
    case (.weak, nil):
      preconditionFailure("a weak delegate has to be an object: \(type(of: delegate)) is a value")
    case (.strong, nil):
      let context = Unmanaged.passRetained(ValueBox(delegate)).toOpaque()
      owned = multicast_delegate(function: multicast_swift_value, context: context)
    }
    options.release = swift_release
    // If this fails, it has called `release`.
    multicast_add(target, owned, &options, &token)
    return Registration(token)
  }

  /// Removes the first registration of this delegate, and waits until no other thread is in a call
  /// of it. Inside a call of it, it does not wait.
  ///
  /// - Returns: False if there is none, or if the delegate is a value.
  @discardableResult
  public func remove(_ delegate: P) -> Bool {
    extendingLifetimes(with: delegate) {
      guard let equal = equal(to: delegate) else { return false }
      return multicast_remove(target, equal) >= 0
    }
  }

  /// Removes all registrations of this delegate, and waits as ``remove(_:)`` does.
  ///
  /// - Returns: False if there is none, or if the delegate is a value.
  @discardableResult
  public func removeEvery(_ delegate: P) -> Bool {
    extendingLifetimes(with: delegate) {
      guard let equal = equal(to: delegate) else { return false }
      return multicast_remove_every(target, equal) >= 0
    }
  }

  /// Removes the delegate at a position in the order of invocation, and waits as ``remove(_:)``
  /// does.
  ///
  /// - Parameter index: 0 is the first. Counts paused delegates, too.
  /// - Returns: False if there are not that many.
  @discardableResult
  public func remove(at index: Int) -> Bool {
    withExtendedLifetime(self) {
      prune()
      return index >= 0 && multicast_remove_at(target, index) >= 0
    }
  }

  /// Removes all delegates, and waits as ``remove(_:)`` does.
  ///
  /// - Returns: How many.
  @discardableResult
  public func removeAll() -> Int {
    withExtendedLifetime(self) { max(0, Int(multicast_remove_all(target))) }
  }

  /// Removes weak delegates that have ended.
  ///
  /// You need not call it: such delegates are removed when their call would begin. Until then each
  /// keeps its memory, but no object that it refers to.
  ///
  /// - Returns: How many.
  @discardableResult
  public func prune() -> Int {
    withExtendedLifetime(self) { reference == .strong ? 0 : max(0, Int(multicast_prune(target))) }
  }

  /// Not of a tuple of both: the type of a tuple would be looked up each time.
  @inline(__always)
  func extendingLifetimes<Result>(with delegate: P, _ body: () -> Result) -> Result {
    withExtendedLifetime(self) { withExtendedLifetime(delegate) { body() } }
  }

  /// The delegate as it was added; nil if it is a value.
  func equal(to delegate: P) -> multicast_delegate? {
    guard let object = Words.object(of: delegate) else { return nil }
    return multicast_delegate(
      function: Words.function(of: delegate, object),
      context: reference == .weak
        ? WeakReference.context(of: object) : Unmanaged.passUnretained(object).toOpaque())
  }
}

// Its one field that is not a constant is the multicast, which any thread may use. Delegates come
// to the threads that invoke, so they have to be Sendable, too.
extension MulticastDelegate: @unchecked Sendable where P: Sendable {}
