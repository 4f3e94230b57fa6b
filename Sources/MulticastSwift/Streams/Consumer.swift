/// The end of a stream that takes events out. It leaves the signal when the stream is given up.
final class Consumer<Event: Sendable>: Sendable {
  private let channel: Channel<Event>
  private let registration: Registration

  init(_ channel: Channel<Event>, _ registration: Registration) {
    self.channel = channel
    self.registration = registration
  }

  deinit { cancel() }

  func next() async -> Event? { await channel.next() }

  func cancel() {
    registration.remove(within: .zero)
    channel.finish()
  }
}
