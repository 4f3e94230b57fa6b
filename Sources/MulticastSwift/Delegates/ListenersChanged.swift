import CMulticast
import MulticastRuntime

/// The function that learns whether a multicast has delegates.
final class ListenersChanged: Sendable {
  typealias Body = @Sendable (_ hasListeners: Bool) -> Void

  private let body: Body

  private init(_ body: @escaping Body) { self.body = body }

  /// Creates a multicast with options, which are completed. Not valid if there is no memory.
  static func createMulticast(
    _ options: inout Multicast.Options, _ label: String?, _ body: Body?
  ) -> Multicast {
    guard let body else { return create(&options, label) }
    let context = Unmanaged.passRetained(ListenersChanged(body))
    options.context = context.toOpaque()
    options.release = swift_release
    options.listenersChanged = { context, _, hasListeners in
      Unmanaged<ListenersChanged>.fromOpaque(context!).takeUnretainedValue().body(hasListeners)
    }
    let target = create(&options, label)
    if target.id == 0 { context.release() }
    return target
  }

  private static func create(
    _ options: inout Multicast.Options, _ label: String?
  ) -> Multicast {
    guard let label else { return Multicast.create(&options) }
    return label.withCString {
      options.label = $0
      return Multicast.create(&options)
    }
  }
}
