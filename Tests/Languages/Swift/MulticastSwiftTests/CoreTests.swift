import MulticastSwift
import Testing

/// Tests labels, lifetimes, changes of the listeners, and watches in the Swift types. The core
/// implements these features.
@Suite struct CoreTests {
  let diary = Diary()

  @Test func aLifetimeEndsRegistrationsOfAllKinds() {
    let lifetime = Lifetime()
    let multicast = MulticastDelegate<any Listener>()
    let signal = Signal<String>()
    let broadcaster = Broadcaster()
    let a = Ear("a", diary)
    multicast.add(a, lifetime: lifetime)
    signal.add(lifetime: lifetime) { [diary] in diary.write($0) }
    broadcaster.register(a, for: (any Listener).self, lifetime: lifetime)
    multicast.add(a)
    #expect(lifetime.count == 3 && !lifetime.hasEnded)
    #expect(lifetime.end() == .ended)
    multicast.invoke { $0.hear("x") }
    signal.invoke("y")
    broadcaster.notify((any Listener).self) { $0.hear("z") }
    #expect(diary.read() == ["a x"])
    #expect(lifetime.hasEnded && lifetime.count == 0 && lifetime.end() == .notFound)
    #expect(!multicast.add(a, lifetime: lifetime).isValid)
    var other: Lifetime? = Lifetime()
    let registration = multicast.add(a, lifetime: other)
    #expect(registration.isValid && other != nil)
    other = nil
    #expect(!registration.isValid)
  }

  @Test func aBagRemovesWhatIsInIt() {
    let signal = Signal<String>()
    var bag: RegistrationBag? = RegistrationBag()
    for name in ["a", "b"] {
      signal.add { [diary] in diary.write("\(name) \($0)") }.store(in: bag!)
    }
    for _ in 0..<100 { signal.add { _ in }.store(in: bag!) }
    let last = signal.add { [diary] in diary.write("last \($0)") }
    #expect(bag!.count == 102)
    bag!.removeAll()
    #expect(bag!.count == 0 && signal.count == 1)
    bag!.insert(last)
    signal.invoke("x")
    #expect(diary.read() == ["last x"])
    bag = nil
    #expect(signal.isEmpty)
  }

  @Test func aDescriptionHasTheLabels() {
    let multicast = MulticastDelegate<Ear>(label: "listeners")
    let a = Ear("a", diary)
    multicast.add(a, label: "the ear")
    #expect(multicast.debugDescription.contains("listeners"))
    #expect(multicast.debugDescription.contains("the ear"))
    let signal = Signal<Int>(label: "numbers")
    signal.add(label: "printer") { _ in }
    #expect(signal.debugDescription.contains("numbers"))
    #expect(signal.debugDescription.contains("printer"))
    withExtendedLifetime(a) {}
  }

  @Test func interestComesAndGoes() {
    var ended: Ear? = Ear("b", diary)
    do {
      let multicast = MulticastDelegate<Ear>(listenersChanged: { [diary] in diary.write("\($0)") })
      let a = Ear("a", diary)
      #expect(diary.read() == [])
      let registration = multicast.add(a)
      multicast.add(a)
      #expect(diary.read() == ["true"])
      registration.remove()
      #expect(diary.read() == [])
      multicast.removeAll()
      #expect(diary.read() == ["false"])
      multicast.add(ended!)
      ended = nil
      multicast.prune()
      #expect(diary.read() == ["true", "false"])
      let signal = Signal<Int>(listenersChanged: { [diary] in diary.write("signal \($0)") })
      let stream = signal.events()
      #expect(diary.read() == ["signal true"])
      withExtendedLifetime((a, stream)) {}
    }
    #expect(diary.read() == ["signal false"])
  }

  @Test func aWatchIsToldOfCalls() {
    let multicast = MulticastDelegate<Ear>()
    let a = Ear("a", diary)
    let registration = multicast.add(a, label: "the ear")
    weak var isThere: Watch?
    do {
      let watch = Watch(
        slowness: .nanoseconds(1),
        called: { [diary] in diary.write("called \($0.registration == registration)") },
        slow: { [diary] in diary.write("slow \($0.label ?? "nil") \($0.time > .zero)") })
      isThere = watch
      #expect(multicast.setWatch(watch) == .ended)
    }
    multicast.invoke { $0.hear("x") }
    #expect(Set(diary.read()) == ["a x", "called true", "slow the ear true"])
    #expect(isThere != nil)
    #expect(multicast.setWatch(nil) == .ended)
    #expect(isThere == nil)
    multicast.invoke { $0.hear("y") }
    #expect(diary.read() == ["a y"])
    withExtendedLifetime(a) {}
  }

  @Test func aWatchEndsWithItsSignal() {
    weak var isThere: Watch?
    do {
      let signal = Signal<Int>()
      signal.add { _ in }
      let watch = Watch(called: { [diary] _ in diary.write("called") })
      isThere = watch
      signal.setWatch(watch)
      signal.invoke(1)
      #expect(diary.read() == ["called"])
    }
    #expect(isThere == nil)
  }
}
