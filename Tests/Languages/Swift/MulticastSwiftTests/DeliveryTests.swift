import CMulticast
import Dispatch
import Foundation
import MulticastSwift
import Synchronization
import Testing

/// Returns the registration of the queued call that this thread is executing. The call may be
/// nested in other calls.
private func queuedRegistration() -> Multicast.Registration {
  var tokens = [Multicast.Token](repeating: Multicast.Token(), count: 8)
  let count = Int(Multicast.Token.callStack(&tokens, capacity: tokens.count))
  for token in tokens.prefix(max(0, count)) {
    var registration = Multicast.Registration.default
    if token.getRegistration(&registration) == .ok, registration.queue.isValid {
      return registration
    }
  }
  return Multicast.Registration.default
}

/// Waits until the condition is true. Returns false if the condition is still false after about ten
/// seconds.
private func eventually(_ isSo: () -> Bool) -> Bool {
  for _ in 0..<100_000 {
    if isSo() { return true }
    usleep(100)
  }
  return false
}

@Suite struct DeliveryTests {
  let diary = Diary()

  @Test func runsWhatWaits() {
    let calls = Delivery()!
    let signal = Signal<Int>()
    signal.add(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    #expect(!calls.wait(for: .zero))
    for event in 0..<4 { signal.invoke(event) }
    #expect(diary.read() == [])
    #expect(calls.wait())
    #expect(calls.run(max: 1) == 1)
    #expect(diary.read() == ["0"])
    #expect(calls.run() == 3)
    #expect(diary.read() == ["1", "2", "3"])
    #expect(calls.run() == 0)
  }

  @Test func refusesWhatHasNoRoom() {
    let calls = Delivery(capacity: 2)!
    let signal = Signal<Int>()
    signal.add(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    #expect((0..<5).map { signal.invoke($0) } == [1, 1, 0, 0, 0])
    calls.run()
    #expect(diary.read() == ["0", "1"])
    #expect(signal.lostCount == 3)
    #expect(calls.statistics == Delivery.Statistics.of(pending: 0, delivered: 2, lost: 3))
    #expect(Delivery(capacity: 0) == nil && Delivery(capacity: 1 << 40) == nil)
  }

  @Test func aSignalCountsWhatItsDeliveryDrops() {
    let calls = Delivery(capacity: 2, overflow: .dropOldest)!
    let signal = Signal<Int>()
    let registration = signal.add(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    for event in 0..<5 { #expect(signal.invoke(event) == 1) }
    #expect(signal.lostCount == 3 && calls.statistics.lost == 3)
    calls.run()
    #expect(diary.read() == ["3", "4"])
    signal.invoke(5)
    calls.clear()
    #expect(signal.lostCount == 4)
    // A queued call to a removed closure does not count as lost.
    signal.invoke(6)
    registration.remove()
    calls.clear()
    #expect(signal.lostCount == 4)
  }

  @Test func blocksUntilThereIsRoom() {
    let calls = Delivery(capacity: 1, overflow: .block)!
    #expect(calls.start() && !calls.start())
    let signal = Signal<Int>()
    let heard = DispatchSemaphore(value: 0)
    signal.add(on: .delivery(calls)) { [diary] in
      diary.write("\($0)")
      heard.signal()
    }
    for event in 0..<100 { #expect(signal.invoke(event) == 1) }
    for _ in 0..<100 { heard.wait() }
    #expect(diary.read() == (0..<100).map { "\($0)" })
    calls.stop()
    signal.invoke(100)
    #expect(calls.statistics.pending == 1)
    calls.clear()
    #expect(calls.statistics.pending == 0 && calls.statistics.lost == 1)
  }

  @Test func wakesALoop() {
    let loop = DispatchQueue(label: "loop")
    let calls = Delivery(wake: { [diary] calls in
      diary.write("woken")
      loop.async { calls.run() }
    })!
    let signal = Signal<Int>()
    signal.add(on: .delivery(calls)) { [diary] in diary.write("\($0)") }
    loop.suspend()
    for event in 0..<3 { signal.invoke(event) }
    loop.resume()
    loop.sync {}
    #expect(diary.read() == ["woken", "0", "1", "2"])
    signal.invoke(3)
    loop.sync {}
    #expect(diary.read() == ["woken", "3"])
  }

  @Test func itsDescriptorIsReadableWhileCallsWait() {
    let calls = Delivery()!
    let signal = Signal<Int>()
    signal.add(on: .delivery(calls)) { _ in }
    var watched = pollfd(fd: calls.descriptor, events: Int16(POLLIN), revents: 0)
    #expect(poll(&watched, 1, 0) == 0)
    signal.invoke(0)
    #expect(poll(&watched, 1, 0) == 1)
    calls.run()
    #expect(poll(&watched, 1, 0) == 0)
  }

  /// When a delivery ends, its queued calls are released without being made, and its delegates are
  /// removed from the signal.
  @Test func itsQueueEndsWithIt() {
    final class Event: Sendable {}
    nonisolated(unsafe) var registration = Multicast.Registration.default
    weak var waits: Event?
    do {
      let calls = Delivery()!
      let signal = Signal<Event>()
      signal.add(on: .delivery(calls)) { [diary] _ in
        registration = queuedRegistration()
        diary.write("called")
      }
      signal.invoke(Event())
      #expect(calls.run() == 1)
      #expect(registration.queue.isValid && registration.target.isValid)
      let event = Event()
      #expect(signal.invoke(event) == 1 && calls.statistics.pending == 1)
      waits = event
    }
    #expect(!registration.queue.isValid && !registration.target.isValid)
    #expect(waits == nil)
    #expect(diary.read() == ["called"])
  }

  /// The last reference to the delivery is dropped while the delivery's thread is in a call. The
  /// call still returns normally.
  @Test func itsThreadEndsWithIt() {
    nonisolated(unsafe) var registration = Multicast.Registration.default
    let (entered, mayLeave, left) = (Gate(), Gate(), Gate())
    weak var isThere: Delivery?
    do {
      let calls = Delivery()!
      isThere = calls
      let signal = Signal<Int>()
      signal.add(on: .delivery(calls)) { [diary] event in
        registration = queuedRegistration()
        entered.open()
        mayLeave.wait()
        diary.write("\(event)")
        left.open()
      }
      #expect(calls.start())
      signal.invoke(0)
      entered.wait()
      signal.invoke(1)
    }
    mayLeave.open()
    left.wait()
    // Until now the call has held a reference to the closure, and therefore to the delivery.
    #expect(eventually { isThere == nil })
    #expect(eventually { !registration.queue.isValid && !registration.target.isValid })
    #expect(diary.read() == ["0"])
  }

  /// Only the closure's registration and `calls` hold references to the delivery. A call to the
  /// closure drops both references.
  @Test func aCallMayGiveUpTheDelivery() {
    let wakes = Atomic(0)
    nonisolated(unsafe) var calls: Delivery? = Delivery(wake: { _ in
      wakes.add(1, ordering: .relaxed)
    })
    weak let isThere = calls
    let signal = Signal<Int>()
    let registration = signal.add(on: .delivery(calls!)) { [diary] event in
      calls = nil
      Registration.current?.remove()
      diary.write("\(event)")
    }
    signal.invoke(1)
    signal.invoke(2)
    calls!.run()
    #expect(diary.read() == ["1"])
    #expect(!registration.isValid && isThere == nil)
    #expect(wakes.load(ordering: .relaxed) == 1)
  }
}
