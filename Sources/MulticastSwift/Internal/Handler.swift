import CMulticast
import Synchronization

/// A signal's delegate, which calls a closure or adds events to a stream's channel.
@usableFromInline
final class Handler<Event: Sendable>: AnyHandler, @unchecked Sendable {
  @usableFromInline let body: @Sendable (Event) -> Void
  @usableFromInline let hasPlace: Bool
  /// Where the closure is called; nil for the invoking thread.
  private let place: Place?
  /// Limits a closure to one pending call at its place. Nil if the closure was not added with
  /// `once` or has no place.
  private let gate: OnceGate?
  /// The stream's channel; nil for a closure.
  private let channel: Channel<Event>?
  private let losses: LossCounter

  init(
    place: Place?, once: Bool, _ losses: LossCounter, _ body: @escaping @Sendable (Event) -> Void
  ) {
    self.body = body
    self.place = place
    self.losses = losses
    channel = nil
    hasPlace = place != nil
    gate = once && place != nil ? OnceGate() : nil
  }

  init(_ channel: Channel<Event>, _ losses: LossCounter) {
    self.channel = channel
    self.losses = losses
    place = nil
    gate = nil
    hasPlace = false
    body = { if !channel.yield($0) { losses.increment() } }
  }

  deinit { channel?.finish() }

  /// Calls the closure or queues the call. Returns false if the closure will not receive the event.
  @inlinable @inline(__always)
  func receive(_ event: Event) -> Bool {
    if hasPlace { return receiveAtPlace(event) }
    body(event)
    return true
  }

  @usableFromInline
  func receiveAtPlace(_ event: Event) -> Bool {
    guard let place else { return false }
    let pass = gate?.enter()
    if gate != nil, pass == nil { return false }
    let registration = Registration(Multicast.Token.current)
    // The pending call must not retain the handler, because the handler retains its place, which
    // may retain the pending call.
    return place.perform(for: registration, losses) {
      // If the registration has been removed, the visit does nothing.
      MulticastDelegate<Handler<Event>>.visit(registration) { handler in
        if pass != nil { registration.remove(within: .zero) }
        handler.body(event)
      }
    }
  }

  /// Like `receive`, but if the stream is full, adds its channel to `full` and returns false.
  func offer(_ event: Event, _ full: FullChannels<Event>) -> Bool {
    guard let channel, !channel.offer(event) else { return channel != nil || receive(event) }
    if full.insert(channel) { return false }
    // The sender has already taken the full channels, so this call is a replay. A replay may lose
    // the event.
    return receive(event)
  }

  override func receive(kept: UnsafeRawPointer) {
    Unmanaged<ReplayEvent<Event>>.fromOpaque(kept)._withUnsafeGuaranteedRef { kept in
      let isReceived = kept.full.map { offer(kept.event, $0) } ?? receive(kept.event)
      if !isReceived { kept.refusals.add(1, ordering: .relaxed) }
    }
  }
}

/// A handler of any event type. The context of a delegate that the core calls is an `AnyHandler`.
@usableFromInline
class AnyHandler: @unchecked Sendable {
  /// - Parameter kept: A `ReplayEvent` of the handler's type.
  func receive(kept: UnsafeRawPointer) {}
}

/// The function of every delegate in a signal that replays.
let receiveReplayEvent: Multicast.Function = { context, _, payload, _ in
  Unmanaged<AnyHandler>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.receive(kept: payload!) }
}

/// An event of a signal that replays, passed to the core as a payload.
final class ReplayEvent<Event: Sendable>: Sendable {
  let event: Event
  /// Collects the full channels if the event comes from `send`; otherwise nil.
  let full: FullChannels<Event>?
  /// The number of handlers that did not receive the event.
  let refusals = Atomic(0)

  init(_ event: Event, _ full: FullChannels<Event>?) {
    self.event = event
    self.full = full
  }
}

/// Ensures that a closure added with `once` has at most one pending call.
final class OnceGate: Sendable {
  private let isOccupied = Atomic(false)

  /// Exists while a call is pending. If a delivery drops the call, another call may become pending.
  final class Pass: Sendable {
    fileprivate let gate: OnceGate

    fileprivate init(_ gate: OnceGate) { self.gate = gate }

    deinit { gate.isOccupied.store(false, ordering: .relaxed) }
  }

  /// Returns nil if another call is pending.
  func enter() -> Pass? {
    // Relaxed order is sufficient, because exactly one thread reads false, and the flag publishes
    // no other memory.
    isOccupied.exchange(true, ordering: .relaxed) ? nil : Pass(self)
  }
}

/// Counts a signal's lost events. It is a separate object because handlers refer to it but must not
/// retain the signal.
final class LossCounter: Sendable {
  private let number = Atomic(0)

  var count: Int { number.load(ordering: .relaxed) }

  func increment() { number.add(1, ordering: .relaxed) }
}
