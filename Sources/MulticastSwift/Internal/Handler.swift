import CMulticast
import Synchronization

/// A closure of a signal, or what feeds a stream.
@usableFromInline
final class Handler<Event: Sendable>: AnyHandler, @unchecked Sendable {
  @usableFromInline let body: @Sendable (Event) -> Void
  @usableFromInline let hasPlace: Bool
  /// nil: the thread that invokes.
  private let place: Place?
  /// Of a closure that is called once, at a place.
  private let gate: OnceGate?
  /// Of a stream.
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

  /// Calls the closure, or queues its call. False: the closure does not get the event.
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
    // The work must not keep the closure: the closure's place may keep the work.
    return place.perform(for: registration, losses) {
      // If the registration was removed meanwhile, this does nothing.
      MulticastDelegate<Handler<Event>>.visit(registration) { handler in
        if pass != nil { registration.remove(within: .zero) }
        handler.body(event)
      }
    }
  }

  /// As `receive`, but a stream that is full does not get the event: its channel is noted.
  func offer(_ event: Event, _ full: FullChannels<Event>) -> Bool {
    guard let channel, !channel.offer(event) else { return channel != nil || receive(event) }
    if full.insert(channel) { return false }
    // The sender does not wait any more: this is a replay.
    return receive(event)
  }

  override func receive(kept: UnsafeRawPointer) {
    Unmanaged<ReplayEvent<Event>>.fromOpaque(kept)._withUnsafeGuaranteedRef { kept in
      let isReceived = kept.full.map { offer(kept.event, $0) } ?? receive(kept.event)
      if !isReceived { kept.refusals.add(1, ordering: .relaxed) }
    }
  }
}

/// A handler, whatever its events are: the context of a delegate that the core calls.
@usableFromInline
class AnyHandler: @unchecked Sendable {
  /// - Parameter kept: A `ReplayEvent` of the handler's type.
  func receive(kept: UnsafeRawPointer) {}
}

/// The function of a delegate in a signal that replays.
let receiveReplayEvent: Multicast.Function = { context, _, payload, _ in
  Unmanaged<AnyHandler>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.receive(kept: payload!) }
}

/// An event that the core keeps for replays.
final class ReplayEvent<Event: Sendable>: Sendable {
  let event: Event
  /// Of an event that is sent.
  let full: FullChannels<Event>?
  /// How many handlers did not get it.
  let refusals = Atomic(0)

  init(_ event: Event, _ full: FullChannels<Event>?) {
    self.event = event
    self.full = full
  }
}

/// One event at a time is on its way to a closure that is called once.
final class OnceGate: Sendable {
  private let isOccupied = Atomic(false)

  /// Exists as long as the event is on its way. If a delivery drops the event, another event may be
  /// taken.
  final class Pass: Sendable {
    fileprivate let gate: OnceGate

    fileprivate init(_ gate: OnceGate) { self.gate = gate }

    deinit { gate.isOccupied.store(false, ordering: .relaxed) }
  }

  /// nil: another event is on its way.
  func enter() -> Pass? {
    // One of the threads gets false. Nothing else depends on the flag.
    isOccupied.exchange(true, ordering: .relaxed) ? nil : Pass(self)
  }
}

/// A count that closures of a signal refer to, without the signal.
final class LossCounter: Sendable {
  private let number = Atomic(0)

  var count: Int { number.load(ordering: .relaxed) }

  func increment() { number.add(1, ordering: .relaxed) }
}
