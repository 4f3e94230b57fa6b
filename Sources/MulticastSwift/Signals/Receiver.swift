import CMulticast

/// A handler, whatever its events are: the context of a delegate that the core calls.
@usableFromInline
class Receiver: @unchecked Sendable {
  /// - Parameter kept: A `KeptEvent` of the handler's type.
  func receive(kept: UnsafeRawPointer) {}
}

/// The function of a delegate in a signal that replays.
let receiveKept: Multicast.Function = { context, _, payload, _ in
  Unmanaged<Receiver>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.receive(kept: payload!) }
}
