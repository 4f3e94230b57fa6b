import Synchronization

/// An event that the core keeps for replays.
final class KeptEvent<Event: Sendable>: Sendable {
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
