// The names used by other popular multicast delegate classes. A program that uses these names still
// compiles, and the compiler offers to replace them.

extension MulticastDelegate {
  /// Equivalent to ``init(_:reference:label:listenersChanged:)``.
  @available(*, deprecated, renamed: "init(_:)")
  public convenience init(delegates: [P]) { self.init(delegates) }

  /// Calls ``add(_:priority:isUnique:once:lifetime:label:)``.
  @available(*, deprecated, renamed: "add(_:)")
  public func addDelegate(_ delegate: P) { add(delegate) }

  /// Calls ``remove(_:)``.
  @available(*, deprecated, renamed: "remove(_:)")
  public func removeDelegate(_ delegate: P) { remove(delegate) }

  /// Calls ``invoke(_:)``.
  @available(*, deprecated, renamed: "invoke(_:)")
  public func invokeDelegates(_ closure: (P) -> Void) { invoke(closure) }

  /// Calls ``invoke(_:)``.
  @available(*, deprecated, renamed: "invoke(_:)")
  public func notifyDelegates(_ closure: (P) -> Void) { invoke(closure) }
}

// A popular class of this name has static functions that notify on the main queue. Their arguments
// differ from the replacements' arguments, so the compiler cannot replace the calls.
extension Broadcaster {
  /// Calls ``register(_:for:on:lifetime:label:)-(_,_,MainPlace,_,_)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.register(observer, for:on: .main)")
  public static func register<T: Sendable>(_ protocolType: T.Type, observer: T) {
    shared.register(observer, for: protocolType, on: .main)
  }

  /// Calls ``unregister(_:for:)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.unregister(observer, for:)")
  public static func unregister<T: Sendable>(_ protocolType: T.Type, observer: T) {
    shared.unregister(observer, for: protocolType)
  }

  /// Calls ``unregisterAll(_:)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.unregisterAll")
  public static func unregister<T: Sendable>(_ protocolType: T.Type) {
    shared.unregisterAll(protocolType)
  }

  /// Calls ``notify(_:_:)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.notify")
  public static func notify<T: Sendable>(
    _ protocolType: T.Type, block: @escaping @Sendable (T) -> Void
  ) {
    shared.notify(protocolType, block)
  }
}

extension CallNode {
  /// Calls ``push(_:)``.
  @available(*, deprecated, renamed: "push(_:)")
  public func pushData(_ data: Delegate) { push(data) }

  /// Calls ``pop(_:)``.
  @available(*, deprecated, renamed: "pop(_:)")
  public func popData(_ data: Delegate) { pop(data) }

  /// Calls ``pop(at:)``.
  @available(*, deprecated, renamed: "pop(at:)")
  public func popIndex(_ index: Int) { pop(at: index) }

  /// Calls ``call(_:)``.
  @available(*, deprecated, renamed: "call(_:)")
  public func callMultiPoint(_ block: (Delegate) -> Void) { call(block) }
}

/// The old name of ``CallNode``.
@available(*, deprecated, renamed: "CallNode")
public typealias HDMultiPointCallNode = CallNode

extension WeakObjectSet {
  /// Calls ``insert(_:)``.
  @available(*, deprecated, renamed: "insert(_:)")
  public mutating func add(_ object: T) { insert(object) }

  /// Calls ``formUnion(_:)``.
  @available(*, deprecated, renamed: "formUnion(_:)")
  public mutating func add(_ objects: [T]) { formUnion(objects) }

  /// Calls ``subtract(_:)``.
  @available(*, deprecated, renamed: "subtract(_:)")
  public mutating func remove(_ objects: [T]) { subtract(objects) }
}
