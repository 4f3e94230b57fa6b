import CMulticast
import Synchronization

/// A closure of a signal, or what feeds a stream.
@usableFromInline
final class Handler<Event: Sendable>: Receiver, @unchecked Sendable {
  @usableFromInline let body: @Sendable (Event) -> Void
  @usableFromInline let isElsewhere: Bool
  /// nil: the thread that invokes.
  private let place: Place?
  /// Of a closure that is called once, at a place.
  private let claim: Claim?
  /// Of a stream.
  private let channel: Channel<Event>?
  private let losses: Losses

  init(place: Place?, once: Bool, _ losses: Losses, _ body: @escaping @Sendable (Event) -> Void) {
    self.body = body
    self.place = place
    self.losses = losses
    channel = nil
    isElsewhere = place != nil
    claim = once && place != nil ? Claim() : nil
  }

  init(_ channel: Channel<Event>, _ losses: Losses) {
    self.channel = channel
    self.losses = losses
    place = nil
    claim = nil
    isElsewhere = false
    body = { if !channel.yield($0) { losses.add() } }
  }

  deinit { channel?.finish() }

  /// Calls the closure, or queues its call. False: the closure does not get the event.
  @inlinable @inline(__always)
  func receive(_ event: Event) -> Bool {
    if isElsewhere { return receiveElsewhere(event) }
    body(event)
    return true
  }

  @usableFromInline
  func receiveElsewhere(_ event: Event) -> Bool {
    guard let place else { return false }
    let claimed = claim?.take()
    if claim != nil, claimed == nil { return false }
    let registration = Registration(Multicast.Token.current)
    // The work must not keep the closure: the closure's place may keep the work.
    return place.perform(for: registration, losses) {
      // If the registration was removed meanwhile, this does nothing.
      MulticastDelegate<Handler<Event>>.visit(registration) { handler in
        if claimed != nil { registration.remove(within: .zero) }
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
    Unmanaged<KeptEvent<Event>>.fromOpaque(kept)._withUnsafeGuaranteedRef { kept in
      let isReceived = kept.full.map { offer(kept.event, $0) } ?? receive(kept.event)
      if !isReceived { kept.refusals.add(1, ordering: .relaxed) }
    }
  }
}
