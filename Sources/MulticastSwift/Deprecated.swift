// The names of well-known classes of this kind. Programs that use these names compile, and the
// compiler offers to change them.
extension MulticastDelegate {
  /// As ``init(_:reference:label:listenersChanged:)``.
  @available(*, deprecated, renamed: "init(_:)")
  public convenience init(delegates: [P]) { self.init(delegates) }

  /// As ``add(_:priority:isUnique:once:lifetime:label:)``.
  @available(*, deprecated, renamed: "add(_:)")
  public func addDelegate(_ delegate: P) { add(delegate) }

  /// As ``remove(_:)``.
  @available(*, deprecated, renamed: "remove(_:)")
  public func removeDelegate(_ delegate: P) { remove(delegate) }

  /// As ``invoke(_:)``.
  @available(*, deprecated, renamed: "invoke(_:)")
  public func invokeDelegates(_ closure: (P) -> Void) { invoke(closure) }

  /// As ``invoke(_:)``.
  @available(*, deprecated, renamed: "invoke(_:)")
  public func notifyDelegates(_ closure: (P) -> Void) { invoke(closure) }
}

// The names of a well-known class of this kind, whose functions are static and notify on the main
// queue. Other arguments than those: the compiler cannot change them by itself.
extension Broadcaster {
  /// As ``register(_:for:on:lifetime:label:)-(_,_,MainPlace,_,_)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.register(observer, for:on: .main)")
  public static func register<T: Sendable>(_ protocolType: T.Type, observer: T) {
    shared.register(observer, for: protocolType, on: .main)
  }

  /// As ``unregister(_:for:)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.unregister(observer, for:)")
  public static func unregister<T: Sendable>(_ protocolType: T.Type, observer: T) {
    shared.unregister(observer, for: protocolType)
  }

  /// As ``unregisterAll(_:)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.unregisterAll")
  public static func unregister<T: Sendable>(_ protocolType: T.Type) {
    shared.unregisterAll(protocolType)
  }

  /// As ``notify(_:_:)`` of ``shared``.
  @available(*, deprecated, message: "use Broadcaster.shared.notify")
  public static func notify<T: Sendable>(
    _ protocolType: T.Type, block: @escaping @Sendable (T) -> Void
  ) {
    shared.notify(protocolType, block)
  }
}

extension CallNode {
  /// As ``push(_:)``.
  @available(*, deprecated, renamed: "push(_:)")
  public func pushData(_ data: Delegate) { push(data) }

  /// As ``pop(_:)``.
  @available(*, deprecated, renamed: "pop(_:)")
  public func popData(_ data: Delegate) { pop(data) }

  /// As ``pop(at:)``.
  @available(*, deprecated, renamed: "pop(at:)")
  public func popIndex(_ index: Int) { pop(at: index) }

  /// As ``call(_:)``.
  @available(*, deprecated, renamed: "call(_:)")
  public func callMultiPoint(_ block: (Delegate) -> Void) { call(block) }
}

/// As ``CallNode``.
@available(*, deprecated, renamed: "CallNode")
public typealias HDMultiPointCallNode = CallNode

// The names of a well-known type of this kind.
extension WeakObjectSet {
  /// As ``insert(_:)``.
  @available(*, deprecated, renamed: "insert(_:)")
  public mutating func add(_ object: T) { insert(object) }

  /// As ``formUnion(_:)``.
  @available(*, deprecated, renamed: "formUnion(_:)")
  public mutating func add(_ objects: [T]) { formUnion(objects) }

  /// As ``subtract(_:)``.
  @available(*, deprecated, renamed: "subtract(_:)")
  public mutating func remove(_ objects: [T]) { subtract(objects) }
}
