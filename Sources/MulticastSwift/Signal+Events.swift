import Synchronization

extension Signal {
  /// The events that a slow stream keeps.
  public enum Kept: Hashable, Sendable {
    /// The newest: older ones are lost.
    case newest
    /// The oldest: newer ones are lost.
    case oldest
  }

  /// The events from now on, for `for await`.
  ///
  /// It ends when the task that iterates is cancelled, when the stream is given up, when all
  /// closures are removed, or when the signal ends. Events that come faster than they are taken
  /// wait in a buffer; events that do not fit are lost, and counted in ``lostCount``.
  ///
  /// - Parameters:
  ///   - capacity: How many events wait at most.
  ///   - kept: Which ones.
  ///   - priority: As in ``add(priority:on:once:_:)``.
  public func events(capacity: Int = 64, keeping kept: Kept = .newest, priority: Int32 = 0)
    -> AsyncStream<Event>
  {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self,
      bufferingPolicy: kept == .newest ? .bufferingNewest(capacity) : .bufferingOldest(capacity))
    let end = StreamEnd(continuation)
    let registration = add(priority: priority) { [losses] event in
      if case .dropped = end.continuation.yield(event) {
        losses.count.add(1, ordering: .relaxed)
      }
    }
    // A stream that has ended already calls this at once.
    continuation.onTermination = { _ in registration.remove(within: .zero) }
    return stream
  }
}

/// Ends a stream when the closure that feeds it is given up.
private final class StreamEnd<Event: Sendable>: Sendable {
  let continuation: AsyncStream<Event>.Continuation

  init(_ continuation: AsyncStream<Event>.Continuation) { self.continuation = continuation }

  deinit { continuation.finish() }
}
