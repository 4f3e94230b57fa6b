import MulticastSwift
import Synchronization
import Testing

protocol Reporter: Actor {
  func report(_ text: String) async throws
}

actor Newspaper: Reporter {
  let name: String
  let diary: Diary
  init(_ name: String, _ diary: Diary) { (self.name, self.diary) = (name, diary) }
  func report(_ text: String) async throws {
    await Task.yield()
    diary.write("\(name) \(text)")
  }
}

struct Refusal: Error, Equatable {
  var text = ""
}

@Suite struct AsyncTests {
  let diary = Diary()

  @Test func delegatesMayBeActors() async throws {
    let multicast = MulticastDelegate<any Reporter>()
    let (a, b) = (Newspaper("a", diary), Newspaper("b", diary))
    multicast.add(a)
    multicast.add(b, priority: 1)
    multicast.add(Newspaper("gone", diary))
    #expect(try await multicast.invokeAsync { try await $0.report("x") } == 2)
    #expect(diary.read() == ["b x", "a x"])
    let broadcaster = Broadcaster()
    broadcaster.register(a, for: (any Reporter).self)
    await broadcaster.notifyAsync((any Reporter).self) { try? await $0.report("y") }
    #expect(diary.read() == ["a y"])
    withExtendedLifetime((a, b)) {}
  }

  @Test func anErrorEndsAnAsyncInvocationAndHasItsType() async {
    let (a, b) = (Ear("a", diary), Ear("b", diary))
    let multicast = MulticastDelegate<Ear>([a, b])
    do throws(Refusal) {
      try await multicast.invokeAsync { (ear) async throws(Refusal) in
        ear.hear("x")
        throw Refusal(text: "no")
      }
      Issue.record("nothing was thrown")
    } catch {
      #expect(error.text == "no")
    }
    #expect(diary.read() == ["a x"])
    withExtendedLifetime((a, b)) {}
  }

  @Test func whoIsRemovedBeforeItsAsyncCallIsNotCalled() async {
    let (a, b) = (Ear("a", diary), Ear("b", diary))
    let multicast = MulticastDelegate<Ear>([a, b])
    #expect(
      await multicast.invokeAsync {
        await Task.yield()
        $0.hear("x")
        multicast.remove(b)
      } == 1)
    #expect(diary.read() == ["a x"])
  }

  @Test func asyncClosuresGetOneEventAfterTheOther() async {
    let signal = Signal<Int>()
    let (stream, done) = AsyncStream.makeStream(of: Int.self)
    let running = Atomic(0)
    let registration = signal.add { [diary] event in
      #expect(running.add(1, ordering: .relaxed).newValue == 1)
      await Task.yield()
      diary.write("\(event)")
      running.subtract(1, ordering: .relaxed)
      done.yield(event)
    }
    for event in 0..<20 { #expect(signal.invoke(event) == 1) }
    for await event in stream where event == 19 { break }
    #expect(diary.read() == (0..<20).map { "\($0)" })
    #expect(registration.remove() == .ended)
    #expect(signal.invoke(20) == 0)
    #expect(diary.read() == [])
  }

  // MARK: - Streams

  @Test func aSenderWaitsForRoom() async {
    let signal = Signal<Int>()
    let stream = signal.events(bufferingPolicy: .bufferingOldest(2))
    let sent = Atomic(0)
    let sender = Task {
      for event in 0..<100 {
        #expect(await signal.send(event) == 1)
        sent.add(1, ordering: .relaxed)
      }
      signal.removeAll()
    }
    var events: [Int] = []
    for await event in stream {
      #expect(sent.load(ordering: .relaxed) <= event + 3)
      await Task.yield()
      events.append(event)
    }
    await sender.value
    #expect(events == Array(0..<100))
    #expect(signal.lostCount == 0)
  }

  @Test func aSenderThatIsCancelledLosesTheEvent() async {
    let signal = Signal<Int>()
    let stream = signal.events(bufferingPolicy: .bufferingOldest(1))
    #expect(await signal.send(0) == 1)
    let sender = Task { await signal.send(1) }
    await Task.yield()
    sender.cancel()
    #expect(await sender.value == 0)
    #expect(signal.lostCount == 1)
    // A waiting sender continues when the stream is removed, and no event counts as lost.
    let other = Task { await signal.send(2) }
    await Task.yield()
    signal.removeAll()
    #expect(await other.value == 0)
    #expect(signal.lostCount == 1)
    var events: [Int] = []
    for await event in stream { events.append(event) }
    #expect(events == [0])
  }

  @Test func severalSendersAndStreams() async {
    let signal = Signal<Int>()
    let streams = [1, 2, 3].map { signal.events(bufferingPolicy: .bufferingOldest($0)) }
    await withTaskGroup(of: [Int].self) { group in
      for stream in streams {
        group.addTask {
          var events: [Int] = []
          for await event in stream {
            events.append(event)
            if events.count == 400 { break }
          }
          return events
        }
      }
      for sender in 0..<4 {
        group.addTask {
          for event in 0..<100 { await signal.send(sender * 100 + event) }
          return []
        }
      }
      for await events in group where !events.isEmpty {
        #expect(events.sorted() == Array(0..<400))
        for sender in 0..<4 {
          let own = events.filter { $0 / 100 == sender }
          #expect(own == own.sorted())
        }
      }
    }
    #expect(signal.lostCount == 0)
  }

  @Test func theCurrentValueComesFirst() async {
    let signal = Signal<Int>(replaying: 1)
    #expect(signal.invoke(1) == 0)
    #expect(signal.invoke(2) == 0)
    signal.add { [diary] in diary.write("\($0)") }
    #expect(diary.read() == ["2"])
    let stream = signal.events()
    #expect(signal.invoke(3) == 2)
    #expect(diary.read() == ["3"])
    #expect(await signal.send(4) == 2)
    var iterator = stream.makeAsyncIterator()
    for event in [2, 3, 4] { #expect(await iterator.next() == event) }
    signal.once { [diary] in diary.write("once \($0)") }
    #expect(diary.read() == ["4", "once 4"])
    #expect(signal.count == 2)
  }

  @Test func aReplayGoesToItsPlace() {
    let calls = Delivery(capacity: 1)!
    let signal = Signal<Int>(replaying: 2)
    for event in 1...3 { signal.invoke(event) }
    signal.add(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    #expect(signal.lostCount == 1)
    #expect(signal.invoke(4) == 0)
    calls.run()
    #expect(diary.read() == ["2"])
    #expect(signal.lostCount == 2)
  }

  @Test func nextIsTheNextEvent() async {
    let signal = Signal<Int>(replaying: 1)
    signal.invoke(1)
    let next = Task { await signal.next() }
    while signal.isEmpty { await Task.yield() }
    signal.invoke(2)
    signal.invoke(3)
    #expect(await next.value == 2)
    #expect(signal.isEmpty)
    let cancelled = Task { await signal.next() }
    while signal.isEmpty { await Task.yield() }
    cancelled.cancel()
    #expect(await cancelled.value == nil)
  }

  @Test func valuesEndWithAnErrorOfItsType() async {
    let signal = Signal<Result<Int, Refusal>>()
    let values = signal.values()
    signal.invoke(.success(1))
    signal.invoke(.success(2))
    signal.invoke(.failure(Refusal(text: "no")))
    signal.invoke(.success(3))
    var numbers: [Int] = []
    do throws(Refusal) {
      for try await number in values { numbers.append(number) }
      Issue.record("nothing was thrown")
    } catch {
      #expect(error.text == "no")
    }
    #expect(numbers == [1, 2])
  }
}
