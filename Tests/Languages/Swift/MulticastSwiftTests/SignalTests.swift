import Dispatch
import MulticastSwift
import Synchronization
import Testing

@Suite struct SignalTests {
  let diary = Diary()

  @Test func callsClosuresByPriorityThenInOrder() {
    let signal = Signal<String>()
    for (name, priority) in [("a", 0), ("b", 1), ("c", 0)] as [(String, Int)] {
      signal.add(priority: priority) { [diary] in diary.write("\(name) \($0)") }
    }
    #expect(signal.invoke("x") == 3)
    #expect(diary.read() == ["b x", "a x", "c x"])
    #expect(signal.count == 3)
    #expect(signal.removeAll() == 3 && signal.isEmpty)
    let void = Signal<Void>()
    void.add { [diary] in diary.write("void") }
    #expect(void.invoke() == 1)
    #expect(diary.read() == ["void"])
  }

  @Test func onceIsCalledOnce() {
    let signal = Signal<Int>()
    let registration = signal.once { [diary] event in
      diary.write("\(event)")
      signal.invoke(event + 1)
    }
    signal.invoke(1)
    signal.invoke(2)
    #expect(diary.read() == ["1"])
    #expect(!registration.isValid && signal.isEmpty)
  }

  @Test func onceAtAPlaceIsCalledOnceAndCanBeRemovedBefore() {
    let calls = Delivery()!
    let signal = Signal<Int>()
    signal.once(on: .delivery(calls)) { [diary] in diary.write("first \($0)") }
    let second = signal.once(on: .delivery(calls)) { [diary] in diary.write("second \($0)") }
    #expect(signal.invoke(1) == 2)
    #expect(signal.invoke(2) == 0)
    #expect(second.remove() == .ended)
    calls.run()
    #expect(diary.read() == ["first 1"])
    #expect(signal.isEmpty)
  }

  @Test func onceGetsAnotherEventIfItsFirstWasLost() {
    let calls = Delivery(capacity: 1)!
    let signal = Signal<Int>()
    signal.once(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    signal.invoke(1)
    calls.clear()
    #expect(signal.lostCount == 1)
    signal.invoke(2)
    signal.invoke(3)
    calls.run()
    #expect(diary.read() == ["2"])
    // The queue is full, so it refuses the new call and drops no other call.
    signal.add(on: .delivery(calls)) { _ in }
    signal.once(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    #expect(signal.invoke(4) == 1)
    calls.run()
    #expect(signal.lostCount == 2)
    signal.removeAll()
    signal.once(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    signal.invoke(5)
    calls.run()
    #expect(diary.read() == ["5"])
  }

  @Test func callsOnAQueueInOrder() {
    let queue = DispatchQueue(label: "test")
    let signal = Signal<Int>()
    signal.add(on: .queue(queue)) { [diary] in
      dispatchPrecondition(condition: .onQueue(queue))
      diary.write("\($0)")
    }
    for event in 0..<100 { #expect(signal.invoke(event) == 1) }
    queue.sync {}
    #expect(diary.read() == (0..<100).map { "\($0)" })
  }

  @Test func aRemovedClosureIsNotCalledLater() {
    let queue = DispatchQueue(label: "test")
    let signal = Signal<Int>()
    let registration = signal.add(on: .queue(queue)) { [diary] in diary.write("\($0)") }
    queue.suspend()
    signal.invoke(1)
    #expect(registration.remove() == .ended)
    queue.resume()
    queue.sync {}
    #expect(diary.read() == [])
  }

  @Test @MainActor func callsOnTheMainQueue() async {
    let signal = Signal<Int>()
    await withCheckedContinuation { continuation in
      signal.once(on: .main) { event in
        MainActor.assumeIsolated {
          #expect(event == 7)
          continuation.resume()
        }
      }
      DispatchQueue.global().async { signal.invoke(7) }
    }
  }

  @Test func callsInAnExecutor() async {
    let executor = QueueExecutor()
    let signal = Signal<Int>()
    await withCheckedContinuation { continuation in
      signal.once(on: .executor(executor)) { event in
        dispatchPrecondition(condition: .onQueue(executor.queue))
        #expect(event == 7)
        continuation.resume()
      }
      #expect(signal.invoke(7) == 1)
    }
  }

  @Test func eventsOfAnyTypeGoThroughADelivery() {
    final class Item: Sendable {
      static let count = Atomic(0)
      init() { Item.count.add(1, ordering: .relaxed) }
      deinit { Item.count.subtract(1, ordering: .relaxed) }
    }
    do {
      let calls = Delivery(capacity: 4, overflow: .dropOldest)!
      let signal = Signal<(texts: [String], item: Item)>()
      for name in ["a", "b"] {
        signal.add(on: .delivery(calls)) { [diary] event in
          diary.write("\(name) \(event.texts.joined())")
        }
      }
      for index in 0..<3 { signal.invoke((["x", "\(index)"], Item())) }
      #expect(Item.count.load(ordering: .relaxed) == 2)
      #expect(calls.run(max: 3) == 3)
      #expect(diary.read() == ["a x1", "b x1", "a x2"])
      #expect(calls.statistics == Delivery.Statistics.of(pending: 1, delivered: 3, lost: 2))
      signal.invoke((["y"], Item()))
    }
    // The queued calls have been released together with the delivery.
    #expect(Item.count.load(ordering: .relaxed) == 0)
  }

  @Test func closuresEndWithTheirRegistrationOrTheSignal() {
    let gone = Diary()
    final class Guest: Sendable {
      let name: String
      let gone: Diary
      init(_ name: String, _ gone: Diary) { (self.name, self.gone) = (name, gone) }
      deinit { gone.write(name) }
    }
    do {
      let signal = Signal<Int>()
      func add(_ name: String, once: Bool = false) -> Registration {
        let guest = Guest(name, gone)
        return signal.add(once: once) { _ in withExtendedLifetime(guest) {} }
      }
      _ = add("a")
      add("b").remove()
      #expect(gone.read() == ["b"])
      _ = add("c", once: true)
      signal.invoke(0)
      #expect(gone.read() == ["c"])
    }
    #expect(gone.read() == ["a"])
  }

  // MARK: - Streams

  @Test func aStreamHasTheEventsFromNowOn() async {
    let signal = Signal<Int>()
    signal.invoke(0)
    let stream = signal.events()
    for event in 1...3 { #expect(signal.invoke(event) == 1) }
    var iterator = stream.makeAsyncIterator()
    for event in 1...3 { #expect(await iterator.next() == event) }
    #expect(signal.lostCount == 0)
  }

  @Test func aStreamIsBoundedAndCountsWhatIsLost() async {
    let signal = Signal<Int>()
    let newest = signal.events(bufferingPolicy: .bufferingNewest(2))
    let oldest = signal.events(bufferingPolicy: .bufferingOldest(3))
    for event in 1...5 { signal.invoke(event) }
    #expect(signal.lostCount == 3 + 2)
    signal.removeAll()
    var events: [Int] = []
    for await event in newest { events.append(event) }
    #expect(events == [4, 5])
    events = []
    for await event in oldest { events.append(event) }
    #expect(events == [1, 2, 3])
  }

  @Test func aStreamEndsWithTheSignal() async {
    var signal: Signal<Int>? = Signal()
    let stream = signal!.events()
    signal!.invoke(1)
    signal = nil
    var events: [Int] = []
    for await event in stream { events.append(event) }
    #expect(events == [1])
  }

  @Test func aStreamThatIsGivenUpLeavesTheSignal() async {
    let signal = Signal<Int>()
    do { _ = signal.events() }
    #expect(signal.isEmpty)
    let stream = signal.events()
    let task = Task { for await _ in stream {} }
    signal.invoke(1)
    task.cancel()
    await task.value
    #expect(signal.isEmpty)
    #expect(signal.invoke(2) == 0)
  }
}

extension Delivery.Statistics {
  static func of(pending: Int, delivered: Int, lost: Int) -> [Int] { [pending, delivered, lost] }
  static func == (statistics: Self, numbers: [Int]) -> Bool {
    [statistics.pending, statistics.delivered, statistics.lost] == numbers
  }
}

/// Runs tasks on a dispatch queue.
final class QueueExecutor: TaskExecutor {
  let queue = DispatchQueue(label: "executor")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedTaskExecutor()
    queue.async { job.runSynchronously(on: executor) }
  }
}
