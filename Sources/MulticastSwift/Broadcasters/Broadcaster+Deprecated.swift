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
