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
