import Dispatch
import MulticastSwift
import Testing

@MainActor protocol TitleObserver: AnyObject, Sendable {
  func didChange(_ title: String)
}

@MainActor final class Window: TitleObserver {
  var titles: [String] = []
  nonisolated init() {}
  func didChange(_ title: String) { titles.append(title) }
}

@Suite struct BroadcasterTests {
  let broadcaster = Broadcaster()
  let diary = Diary()
  typealias Observer = any Listener

  @Test func notifiesTheObserversOfAProtocol() {
    let (a, b) = (Ear("a", diary), Ear("b", diary))
    broadcaster.register(a, for: Observer.self)
    broadcaster.register(b, for: (any OpenListener).self)
    broadcaster.notify(Observer.self) { $0.hear("x") }
    #expect(diary.read() == ["a x"])
    broadcaster.notify((any OpenListener).self) { $0.hear("y") }
    #expect(diary.read() == ["b y"])
    #expect(Broadcaster().notify(Observer.self) { $0.hear("z") } == 0)
    #expect(diary.read() == [])
    #expect(Broadcaster.shared === Broadcaster.shared && Broadcaster.shared !== broadcaster)
    withExtendedLifetime((a, b)) {}
  }

  @Test func anObserverIsRegisteredOnceAtAPlace() {
    let (a, b) = (Ear("a", diary), Ear("b", diary))
    for ear in [a, b, a] { broadcaster.register(ear, for: Observer.self) }
    broadcaster.notify(Observer.self) { $0.hear("x") }
    #expect(diary.read() == ["b x", "a x"])
    withExtendedLifetime((a, b)) {}
  }

  @Test func unregistersOneOrAll() {
    let queue = DispatchQueue(label: "test")
    let ears = ["a", "b", "c"].map { Ear($0, diary) }
    for ear in ears { broadcaster.register(ear, for: Observer.self) }
    broadcaster.register(ears[0], for: Observer.self, on: .queue(queue))
    #expect(broadcaster.unregister(ears[0], for: Observer.self))
    #expect(!broadcaster.unregister(ears[0], for: Observer.self))
    broadcaster.notify(Observer.self) { $0.hear("x") }
    queue.sync {}
    #expect(diary.read() == ["b x", "c x"])
    #expect(broadcaster.unregisterAll(Observer.self) == 2)
    broadcaster.notify(Observer.self) { $0.hear("y") }
    #expect(diary.read() == [])
    withExtendedLifetime(ears) {}
  }

  @Test func eachObserverIsCalledAtItsPlace() {
    let queue = DispatchQueue(label: "test")
    let calls = Delivery()!
    let ears = ["a", "b", "c"].map { Ear($0, diary) }
    broadcaster.register(ears[0], for: Observer.self, on: .queue(queue))
    broadcaster.register(ears[1], for: Observer.self)
    broadcaster.register(ears[2], for: Observer.self, on: .delivery(calls))
    queue.suspend()
    // The result also counts the two observers whose calls are still queued.
    #expect(broadcaster.notify(Observer.self) { $0.hear("x") } == 3)
    #expect(diary.read() == ["b x"])
    queue.resume()
    queue.sync {}
    #expect(diary.read() == ["a x"])
    calls.run()
    #expect(diary.read() == ["c x"])
    withExtendedLifetime(ears) {}
  }

  @Test func whoIsUnregisteredOrEndsBeforeTheCallIsNotCalled() {
    let calls = Delivery()!
    let a = Ear("a", diary)
    var b: Ear? = Ear("b", diary)
    let c = Ear("c", diary)
    for ear in [a, b!, c] { broadcaster.register(ear, for: Observer.self, on: .delivery(calls)) }
    broadcaster.notify(Observer.self) { $0.hear("x") }
    broadcaster.unregister(a, for: Observer.self)
    b = nil
    let late = Ear("late", diary)
    broadcaster.register(late, for: Observer.self, on: .delivery(calls))
    calls.run()
    #expect(diary.read() == ["c x"])
    withExtendedLifetime((a, b, c, late)) {}
  }

  @Test func placesThatAreNotUsedAreGivenUp() {
    for _ in 0..<10 {
      weak var place: Delivery?
      do {
        let calls = Delivery()!
        place = calls
        let ear = Ear("a", diary)
        broadcaster.register(ear, for: Observer.self, on: .delivery(calls))
        broadcaster.unregister(ear, for: Observer.self)
      }
      broadcaster.register(Ear("b", diary), for: Observer.self, on: .delivery(Delivery()!))
      broadcaster.unregisterAll(Observer.self)
      #expect(place == nil)
    }
  }

  @Test @MainActor func observersMayBelongToTheMainActor() async {
    let windows = [Window(), Window()]
    broadcaster.register(windows[0], for: (any TitleObserver).self, on: .main)
    broadcaster.register(windows[1], for: (any TitleObserver).self)
    await Task.detached { [broadcaster] in
      _ = broadcaster.notify((any TitleObserver).self, onMainActor: { $0.didChange("x") })
    }.value
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    #expect(windows.map(\.titles) == [["x"], ["x"]])
  }

  @Test @available(*, deprecated) func oldNamesDoTheSame() async {
    let a = Ear("a", diary)
    Broadcaster.register(Observer.self, observer: a)
    Broadcaster.notify(Observer.self) {
      dispatchPrecondition(condition: .onQueue(.main))
      $0.hear("x")
    }
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    #expect(diary.read() == ["a x"])
    Broadcaster.unregister(Observer.self, observer: a)
    Broadcaster.register(Observer.self, observer: a)
    Broadcaster.unregister(Observer.self)
    #expect(!Broadcaster.shared.unregister(a, for: Observer.self))
  }
}
