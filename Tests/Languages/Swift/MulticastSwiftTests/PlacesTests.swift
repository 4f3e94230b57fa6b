import Dispatch
import MulticastSwift
import Testing

@MainActor final class Label {
  var text = ""
}

@Suite struct PlacesTests {
  let diary = Diary()

  @Test func eachDelegateIsNotifiedAtItsPlace() {
    let queue = DispatchQueue(label: "test")
    let calls = Delivery()!
    let multicast = MulticastDelegate<any Listener>()
    let ears = ["a", "b", "c", "d"].map { Ear($0, diary) }
    multicast.add(ears[0], on: .queue(queue))
    multicast.add(ears[1])
    multicast.add(ears[2], on: .delivery(calls), priority: 1)
    multicast.add(ears[3], on: .notifier, priority: 1)
    queue.suspend()
    multicast.notify { $0.hear("x") }
    #expect(diary.read() == ["d x", "b x"])
    calls.run()
    #expect(diary.read() == ["c x"])
    queue.resume()
    queue.sync {}
    #expect(diary.read() == ["a x"])
    multicast.invoke { $0.hear("y") }
    #expect(diary.read() == ["c y", "d y", "a y", "b y"])
    withExtendedLifetime(ears) {}
  }

  @Test func aUniqueDelegateMovesToItsNewPlace() {
    let queue = DispatchQueue(label: "test")
    let multicast = MulticastDelegate<any Listener>()
    let a = Ear("a", diary)
    multicast.add(a, on: .queue(queue))
    multicast.add(a, on: .notifier, isUnique: true)
    queue.suspend()
    multicast.notify { $0.hear("x") }
    #expect(diary.read() == ["a x"])
    queue.resume()
    queue.sync {}
    #expect(diary.read() == [])
    withExtendedLifetime(a) {}
  }

  /// On Linux, each access to a global dispatch queue returns a new object. An observer must still
  /// be registered only once.
  @Test func anObserverIsRegisteredOnceWhateverItsPlace() {
    let broadcaster = Broadcaster()
    let a = Ear("a", diary)
    let group = DispatchGroup()
    for _ in 0..<3 {
      broadcaster.register(a, for: (any Listener).self, on: .queue(.global()))
      broadcaster.register(a, for: (any Listener).self, on: .queue(DispatchQueue.global()))
    }
    group.enter()
    broadcaster.notify((any Listener).self) {
      $0.hear("x")
      group.leave()
    }
    group.wait()
    DispatchQueue.global().sync(flags: .barrier) {}
    #expect(diary.read() == ["a x"])
    #expect(broadcaster.unregister(a, for: (any Listener).self))
    #expect(!broadcaster.unregister(a, for: (any Listener).self))
  }

  @Test @MainActor func closuresMayBelongToTheMainActor() async {
    let label = Label()
    let signal = Signal<String>()
    let registration = signal.add(on: .main) { label.text += $0 }
    signal.once(on: .main) { label.text += "once " + $0 }
    await Task.detached {
      signal.invoke("x")
      signal.invoke("y")
    }.value
    await mainQueueIsIdle()
    #expect(label.text == "xonce xy")
    signal.invoke("z")
    registration.remove()
    await mainQueueIsIdle()
    #expect(label.text == "xonce xy")
  }

  @Test @MainActor func delegatesMayBeInvokedOnTheMainActor() async {
    let windows = [Window(), Window()]
    let multicast = MulticastDelegate<any TitleObserver>(windows)
    await Task.detached { _ = multicast.invoke(on: .main) { $0.didChange("x") } }.value
    await mainQueueIsIdle()
    #expect(windows.map(\.titles) == [["x"], ["x"]])
  }
}

@MainActor func mainQueueIsIdle() async {
  await withCheckedContinuation { continuation in
    DispatchQueue.main.async { continuation.resume() }
  }
}
