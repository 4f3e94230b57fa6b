import Dispatch
import Foundation
import MulticastSwift
import Synchronization
import Testing

/// Tests with several threads. They also fail if the process crashes or hangs, if memory leaks, or
/// if a sanitizer reports an error.
@Suite(.serialized) struct ThreadsTests {
  /// Counts its live instances, and calls made to instances that no longer exist.
  final class Canary: Sendable {
    static let living = Atomic(0)
    static let calledWhenDead = Atomic(0)
    private let song = Locked("alive")

    init() { Canary.living.add(1, ordering: .relaxed) }
    deinit {
      song.withLock { $0 = "dead" }
      Canary.living.subtract(1, ordering: .relaxed)
    }

    func sing() {
      if song.withLock({ $0 != "alive" }) { Canary.calledWhenDead.add(1, ordering: .relaxed) }
    }
  }

  /// Runs each body on a separate thread. All threads begin at the same time.
  func together(_ bodies: [@Sendable () -> Void]) {
    let gate = Gate()
    let threads = bodies.map { body in
      Thread {
        gate.wait()
        body()
      }
    }
    gate.open()
    for thread in threads { thread.join() }
  }

  @Test(arguments: [MulticastDelegate<Canary>.Reference.weak, .strong])
  func eachPairOfOperations(_ reference: MulticastDelegate<Canary>.Reference) {
    let living = Canary.living.load(ordering: .relaxed)
    do {
      let multicast = MulticastDelegate<Canary>(reference: reference)
      let kept = (0..<8).map { _ in Canary() }
      for canary in kept { multicast.add(canary) }
      let queue = DispatchQueue(label: "pairs")
      let operations: [@Sendable () -> Void] = [
        { multicast.invoke { $0.sing() } },
        { multicast.add(Canary()) },
        { multicast.add(kept[0], priority: 1, isUnique: true) },
        { multicast.remove(kept[1]) },
        { multicast.removeEvery(kept[2]) },
        { multicast.add(kept[3]).remove() },
        { _ = multicast.first { $0 === kept[4] ? 1 : nil } },
        { _ = multicast.delegates.count },
        { _ = multicast.count },
        { _ = multicast.contains(kept[5]) },
        { multicast.remove(at: 2) },
        { multicast.prune() },
        { multicast.removeAll() },
        {
          let registration = multicast.add(kept[6])
          registration.pause()
          registration.resume()
        },
        { multicast.invoke(on: queue) { $0.sing() } },
        { _ = multicast.add(kept[7]).scoped },
      ]
      for (index, first) in operations.enumerated() {
        for second in operations[index...] {
          together([
            { for _ in 0..<10 { first() } },
            { for _ in 0..<10 { second() } },
          ])
        }
      }
      queue.sync {}
      multicast.removeAll()
      #expect(multicast.isEmpty)
    }
    #expect(Canary.living.load(ordering: .relaxed) == living)
    #expect(Canary.calledWhenDead.load(ordering: .relaxed) == 0)
  }

  @Test func delegatesEndOnAnotherThreadWhileTheyAreCalled() {
    let living = Canary.living.load(ordering: .relaxed)
    let calls = Atomic(0)
    let isDone = Atomic(false)
    do {
      let multicast = MulticastDelegate<Canary>()
      let invoke: @Sendable () -> Void = {
        while !isDone.load(ordering: .relaxed) {
          multicast.invoke {
            $0.sing()
            calls.add(1, ordering: .relaxed)
          }
        }
      }
      together([
        invoke, invoke,
        {
          for _ in 0..<300 {
            let canaries = (0..<4).map { _ in Canary() }
            for canary in canaries { multicast.add(canary) }
            let before = calls.load(ordering: .relaxed)
            while calls.load(ordering: .relaxed) == before { sched_yield() }
            // The canaries are released here, some of them while they are being called.
            withExtendedLifetime(canaries) {}
          }
          isDone.store(true, ordering: .relaxed)
        },
      ])
      multicast.prune()
      #expect(multicast.isEmpty)
    }
    #expect(Canary.living.load(ordering: .relaxed) == living)
    #expect(Canary.calledWhenDead.load(ordering: .relaxed) == 0)
  }

  @Test func noCallRunsAfterARemoval() {
    let multicast = MulticastDelegate<Canary>(reference: .strong)
    let late = Atomic(0)
    let isDone = Atomic(false)
    let ears = Signal<Int>()
    together([
      { while !isDone.load(ordering: .relaxed) { ears.invoke(0) } },
      { while !isDone.load(ordering: .relaxed) { multicast.invoke { $0.sing() } } },
      {
        for _ in 0..<500 {
          let flag = Flag()
          let registration = ears.add { _ in
            if flag.isSet { late.add(1, ordering: .relaxed) }
          }
          let other = multicast.add(Canary())
          #expect(registration.remove() == .ended)
          flag.set()
          #expect(other.remove() == .ended)
        }
        isDone.store(true, ordering: .relaxed)
      },
    ])
    #expect(late.load(ordering: .relaxed) == 0)
    #expect(ears.isEmpty && multicast.isEmpty)
  }

  @Test func signalsBroadcastersAndDeliveries() {
    let living = Canary.living.load(ordering: .relaxed)
    do {
      let broadcaster = Broadcaster()
      let signal = Signal<Canary>()
      let delivery = Delivery(capacity: 16, overflow: .dropOldest)!
      delivery.start()
      let queue = DispatchQueue(label: "test")
      together([
        { for _ in 0..<300 { signal.invoke(Canary()) } },
        { for _ in 0..<300 { broadcaster.notify(Canary.self) { $0.sing() } } },
        {
          for index in 0..<300 {
            let place: Place = [.delivery(delivery), .queue(queue), .notifier][index % 3]
            let canary = Canary()
            broadcaster.register(canary, for: Canary.self, on: place)
            let registration = signal.add(on: place, once: index % 2 == 0) { $0.sing() }
            let stream = signal.events(bufferingPolicy: .bufferingNewest(1))
            if index % 5 == 0 { broadcaster.unregister(canary, for: Canary.self) }
            if index % 7 == 0 { signal.removeAll() }
            registration.remove()
            withExtendedLifetime(stream) {}
          }
        },
      ])
      queue.sync {}
      signal.removeAll()
      delivery.stop()
      delivery.clear()
    }
    #expect(Canary.living.load(ordering: .relaxed) == living)
    #expect(Canary.calledWhenDead.load(ordering: .relaxed) == 0)
  }

  /// Delegates are added, moved to other threads or queues, and removed while their multicast is
  /// notified.
  @Test(arguments: [MulticastDelegate<Canary>.Reference.weak, .strong])
  func placesChangeWhileDelegatesAreNotified(_ reference: MulticastDelegate<Canary>.Reference) {
    let living = Canary.living.load(ordering: .relaxed)
    let calls = Atomic(0)
    let isDone = Atomic(false)
    do {
      let multicast = MulticastDelegate<Canary>(reference: reference)
      let delivery = Delivery(capacity: 16, overflow: .dropOldest)!
      delivery.start()
      let queue = DispatchQueue(label: "test")
      let kept = (0..<4).map { _ in Canary() }
      let change: @Sendable () -> Void = {
        for index in 0..<300 {
          let place: Place = [.delivery(delivery), .queue(queue), .notifier][index % 3]
          multicast.add(kept[index % 4], on: place, isUnique: true)
          let registration = multicast.add(Canary(), on: place)
          if index % 2 == 0 { multicast.remove(kept[(index + 1) % 4]) }
          registration.remove()
        }
      }
      together([
        {
          while !isDone.load(ordering: .relaxed) {
            multicast.notify {
              $0.sing()
              calls.add(1, ordering: .relaxed)
            }
            queue.sync {}
          }
        },
        {
          together([change, change])
          // Wait until the delegates have been notified several times after the last change.
          let before = calls.load(ordering: .relaxed)
          while calls.load(ordering: .relaxed) < before + 8 { sched_yield() }
          isDone.store(true, ordering: .relaxed)
        },
      ])
      multicast.removeAll()
      queue.sync {}
      delivery.stop()
      delivery.clear()
      #expect(multicast.isEmpty)
    }
    #expect(Canary.living.load(ordering: .relaxed) == living)
    #expect(Canary.calledWhenDead.load(ordering: .relaxed) == 0)
  }

  /// Watches of one multicast and of all multicasts are replaced during calls.
  @Test func watchesChangeDuringCalls() {
    let living = Canary.living.load(ordering: .relaxed)
    let reports = Atomic(0)
    let isDone = Atomic(false)
    do {
      let multicast = MulticastDelegate<Canary>()
      let kept = Canary()
      multicast.add(kept)
      let invoke: @Sendable () -> Void = {
        while !isDone.load(ordering: .relaxed) { multicast.invoke { $0.sing() } }
      }
      let newWatch: @Sendable () -> Watch = {
        let spy = Canary()
        return Watch(
          slowness: .zero,
          called: { _ in
            spy.sing()
            reports.add(1, ordering: .relaxed)
          }, slow: { _ in spy.sing() })
      }
      together([
        invoke, invoke,
        {
          together([
            { for _ in 0..<100 { multicast.setWatch(newWatch()) } },
            { for index in 0..<100 { multicast.setWatch(index % 2 == 0 ? nil : newWatch()) } },
            { for index in 0..<100 { Watch.setForAll(index % 2 == 0 ? newWatch() : nil) } },
          ])
          multicast.setWatch(newWatch())
          let before = reports.load(ordering: .relaxed)
          while reports.load(ordering: .relaxed) < before + 2 { sched_yield() }
          isDone.store(true, ordering: .relaxed)
        },
      ])
      #expect(multicast.setWatch(nil) == .ended)
      #expect(Watch.setForAll(nil) == .ended)
      withExtendedLifetime(kept) {}
    }
    #expect(Canary.living.load(ordering: .relaxed) == living)
    #expect(Canary.calledWhenDead.load(ordering: .relaxed) == 0)
  }

  @Test func onceIsCalledOnceByManyThreads() {
    let calls = Atomic(0)
    let signal = Signal<Int>()
    let delivery = Delivery()!
    for _ in 0..<200 {
      signal.once { _ in calls.add(1, ordering: .relaxed) }
      signal.once(on: .delivery(delivery)) { _ in calls.add(1, ordering: .relaxed) }
      together([{ signal.invoke(1) }, { signal.invoke(2) }])
      delivery.run()
    }
    #expect(calls.load(ordering: .relaxed) == 400)
    #expect(signal.isEmpty)
  }
}

final class Flag: Sendable {
  private let value = Atomic(false)
  var isSet: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}

/// A thread whose closure has been released by the time `join` returns.
struct Thread {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private var thread = pthread_t()

  init(_ run: @escaping @Sendable () -> Void) {
    let status = pthread_create(
      &thread, nil,
      {
        Unmanaged<Body>.fromOpaque($0!).takeRetainedValue().run()
        return nil
      }, Unmanaged.passRetained(Body(run)).toOpaque())
    precondition(status == 0)
  }

  func join() { pthread_join(thread, nil) }
}
