import CMulticast

extension Signal {
  /// Which events wait while a stream's consumer is busy: all, the newest or the oldest ones.
  public typealias BufferingPolicy = AsyncStream<Event>.Continuation.BufferingPolicy

  /// The events from now on, for `for await`. If the signal replays, it begins with the last ones.
  ///
  /// It ends when the task that iterates is cancelled, when the stream is given up, when all
  /// closures are removed, or when the signal ends. Events that come faster than they are taken
  /// wait in a buffer; events that do not fit are lost, and counted in ``lostCount``. With
  /// ``send(_:isolation:)`` the sender waits instead.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: How many events wait at most, and which ones.
  ///   - priority: Higher gets an event first.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func events(
    bufferingPolicy: BufferingPolicy = .bufferingNewest(64), priority: Int = 0
  ) -> AsyncStream<Event> {
    stream(bufferingPolicy, priority, flags: 0)
  }

  /// The next event; nil if the task is cancelled, all closures are removed, or the signal ends.
  ///
  /// - Parameter isolation: The actor of the caller.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func next(isolation: isolated (any Actor)? = #isolation) async -> Event? {
    var events = stream(.bufferingOldest(1), 0, flags: MULTICAST_NO_REPLAY).makeAsyncIterator()
    return await events.next(isolation: isolation)
  }

  /// Calls all closures with an event, and suspends until each stream and each async closure has
  /// room for it: so these lose nothing.
  ///
  /// If the task is cancelled meanwhile, those without room do not get the event, and it counts as
  /// lost for each of them.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - isolation: The actor of the caller.
  /// - Returns: How many closures and streams have got it, or are going to at their places.
  /// - Complexity: O(closures).
  @discardableResult
  public func send(
    _ event: Event, isolation: isolated (any Actor)? = #isolation
  ) async -> Int {
    let full = FullChannels<Event>()
    let called = replays ? invokeAndKeep(event, full) : offer(event, full)
    return called + (await put(event, into: full.take()))
  }

  private func offer(_ event: Event, _ full: FullChannels<Event>) -> Int {
    var called = 0
    handlers.visit { handler in
      if handler.offer(event, full) { called += 1 }
      return true
    }
    return called
  }

  private func put(_ event: Event, into channels: [Channel<Event>]) async -> Int {
    var taken = 0
    for channel in channels {
      switch await channel.put(event) {
      case .taken: taken += 1
      case .lost: losses.add()
      case .ended: break
      }
    }
    return taken
  }

  private func stream(
    _ bufferingPolicy: BufferingPolicy, _ priority: Int, flags: UInt32
  ) -> AsyncStream<Event> {
    let channel = Channel<Event>(bufferingPolicy)
    let registration = add(Handler(channel, losses), priority: priority, flags: flags)
    let consumer = Consumer(channel, registration)
    return AsyncStream(
      unfolding: { await consumer.next() }, onCancel: { consumer.cancel() })
  }
}
