/// The streams that had no room for an event, for its sender to wait for.
final class FullChannels<Event: Sendable>: Sendable {
  /// nil: the sender has taken them.
  private let channels = Locked<[Channel<Event>]?>([])

  /// False: the sender has taken all.
  func insert(_ channel: Channel<Event>) -> Bool {
    channels.withLock { channels in
      channels?.append(channel)
      return channels != nil
    }
  }

  func take() -> [Channel<Event>] {
    channels.withLock { channels in
      defer { channels = nil }
      return channels ?? []
    }
  }
}
