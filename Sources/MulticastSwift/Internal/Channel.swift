/// The buffer between a signal and a stream's consumer.
///
/// The channel never releases an object or resumes a continuation under its lock, because both may
/// run the program's code.
final class Channel<Event: Sendable>: Sendable {
  /// The outcome of `put`.
  enum Outcome: Sendable { case taken, lost, ended }

  private struct Sender: Sendable {
    let number: Int
    let event: Event
    let continuation: CheckedContinuation<Outcome, Never>
  }

  private struct Content: Sendable {
    var events = Fifo<Event>()
    var receivers = Fifo<CheckedContinuation<Event?, Never>>()
    var senders = Fifo<Sender>()
    var newestSender = 0
    /// The numbers of senders that were cancelled before they began to wait.
    var cancelled: Set<Int> = []
    var isFinished = false
  }

  private let content = Locked(Content())
  private let capacity: Int
  private let keepsNewest: Bool

  init(_ policy: AsyncStream<Event>.Continuation.BufferingPolicy) {
    switch policy {
    case .bufferingNewest(let count): (capacity, keepsNewest) = (max(0, count), true)
    case .bufferingOldest(let count): (capacity, keepsNewest) = (max(0, count), false)
    case .unbounded: (capacity, keepsNewest) = (.max, false)
    @unknown default: (capacity, keepsNewest) = (.max, false)
    }
  }

  // MARK: - Adding events

  /// Adds an event. If the buffer is full, drops either the oldest event or the new one, depending
  /// on the policy, and returns false.
  func yield(_ event: Event) -> Bool {
    let (isOffered, receiver, lost) = content.withLock { content in
      let (isOffered, receiver) = offer(event, &content)
      if isOffered || !keepsNewest || capacity == 0 { return (isOffered, receiver, Event?.none) }
      let lost = content.events.popFirst()
      content.events.append(event)
      return (false, receiver, lost)
    }
    receiver?.resume(returning: event)
    withExtendedLifetime(lost) {}
    return isOffered
  }

  /// Adds an event if there is room. Otherwise returns false.
  func offer(_ event: Event) -> Bool {
    let (isOffered, receiver) = content.withLock { offer(event, &$0) }
    receiver?.resume(returning: event)
    return isOffered
  }

  private func offer(
    _ event: Event, _ content: inout Content
  ) -> (isOffered: Bool, CheckedContinuation<Event?, Never>?) {
    if content.isFinished { return (true, nil) }
    if let receiver = content.receivers.popFirst() { return (true, receiver) }
    if content.events.count >= capacity { return (false, nil) }
    content.events.append(event)
    return (true, nil)
  }

  /// Adds an event as soon as there is room. Waiting senders are served in order.
  func put(_ event: Event) async -> Outcome {
    let number = content.withLock { content in
      content.newestSender += 1
      return content.newestSender
    }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        send(Sender(number: number, event: event, continuation: continuation))
      }
    } onCancel: {
      cancelSender(number)
    }
    // If the cancellation handler ran, it has returned by now, so remove the number it inserted.
    if Task.isCancelled { _ = content.withLock { $0.cancelled.remove(number) } }
    return outcome
  }

  private func send(_ sender: Sender) {
    typealias Result = (outcome: Outcome?, receiver: CheckedContinuation<Event?, Never>?)
    let (outcome, receiver) = content.withLock { content -> Result in
      if content.isFinished { return (.ended, nil) }
      if content.cancelled.contains(sender.number) { return (.lost, nil) }
      let (isOffered, receiver) = offer(sender.event, &content)
      if isOffered { return (.taken, receiver) }
      content.senders.append(sender)
      return (nil, nil)
    }
    receiver?.resume(returning: sender.event)
    if let outcome { sender.continuation.resume(returning: outcome) }
  }

  private func cancelSender(_ number: Int) {
    let sender = content.withLock { content -> Sender? in
      if let sender = content.senders.remove(where: { $0.number == number }) { return sender }
      // The sender has not begun to wait yet, or has already stopped waiting.
      content.cancelled.insert(number)
      return nil
    }
    sender?.continuation.resume(returning: .lost)
  }

  // MARK: - Receiving events

  /// Waits for the next event. Returns nil if the channel is finished and empty. If the task is
  /// cancelled, finishes the channel.
  func next() async -> Event? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { receive($0) }
    } onCancel: {
      finish()
    }
  }

  private func receive(_ receiver: CheckedContinuation<Event?, Never>) {
    typealias Result = (event: Event?, sender: Sender?, isWaiting: Bool)
    let result = content.withLock { content -> Result in
      if let (event, sender) = take(&content) { return (event, sender, false) }
      if !content.isFinished { content.receivers.append(receiver) }
      return (nil, nil, !content.isFinished)
    }
    result.sender?.continuation.resume(returning: .taken)
    if !result.isWaiting { receiver.resume(returning: result.event) }
  }

  /// Removes the oldest event, and adds the event of the sender that has been waiting longest.
  private func take(_ content: inout Content) -> (Event, Sender?)? {
    guard let event = content.events.popFirst() else {
      guard let sender = content.senders.popFirst() else { return nil }
      return (sender.event, sender)
    }
    let sender = content.senders.popFirst()
    if let sender { content.events.append(sender.event) }
    return (event, sender)
  }

  /// Ends the channel. No further event can be added, but buffered events can still be received.
  func finish() {
    let (receivers, senders) = content.withLock { content in
      content.isFinished = true
      defer { (content.receivers, content.senders) = (Fifo(), Fifo()) }
      return (content.receivers, content.senders)
    }
    var waiting = (receivers: receivers, senders: senders)
    while let receiver = waiting.receivers.popFirst() { receiver.resume(returning: nil) }
    while let sender = waiting.senders.popFirst() {
      sender.continuation.resume(returning: .ended)
    }
  }
}

/// The receiving end of a stream, which removes the registration from the signal when the stream is
/// deallocated.
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

/// Collects the channels that had no room for an event. The sender then waits until they have room.
final class FullChannels<Event: Sendable>: Sendable {
  /// nil after the sender has taken the channels.
  private let channels = Locked<[Channel<Event>]?>([])

  /// Returns false if the sender has already taken the channels.
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
