final class ClosureArray: Contender {
  static let name = "array of closures with [weak self]"
  private var closures: [(key: ObjectIdentifier, call: (Int) -> Void)] = []

  func add(_ counter: Counter) {
    closures.append((ObjectIdentifier(counter), { [weak counter] in counter?.hear($0) }))
  }

  func remove(_ counter: Counter) {
    let key = ObjectIdentifier(counter)
    if let found = closures.firstIndex(where: { $0.key == key }) { closures.remove(at: found) }
  }

  func invoke(times: Int) {
    for _ in 0..<times { for closure in closures { closure.call(1) } }
  }
}

/// Uses one stream for each delegate. A single task adds all events and then takes them out, so it
/// never waits. With separate tasks, the streams would be slower.
final class Streams: Contender {
  static let name = "AsyncStream, put in and taken out"

  private final class Consumer {
    weak var counter: Counter?
    let continuation: AsyncStream<Int>.Continuation
    var iterator: AsyncStream<Int>.Iterator

    init(_ counter: Counter) {
      self.counter = counter
      let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
      self.continuation = continuation
      iterator = stream.makeAsyncIterator()
    }
  }

  private var consumers: [Consumer] = []

  func add(_ counter: Counter) { consumers.append(Consumer(counter)) }

  func remove(_ counter: Counter) {
    if let found = consumers.firstIndex(where: { $0.counter === counter }) {
      consumers.remove(at: found).continuation.finish()
    }
  }

  func invoke(times: Int) async {
    for _ in 0..<times {
      for consumer in consumers { consumer.continuation.yield(1) }
      for consumer in consumers {
        if let number = await consumer.iterator.next() { consumer.counter?.hear(number) }
      }
    }
  }
}
