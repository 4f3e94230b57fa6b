import CMulticast
import Dispatch
import Testing

/// A Swift object that is used as a context. The registration retains the object, and `release`
/// releases the object.
final class Listener: @unchecked Sendable {
  var events: [UInt32] = []
  var texts: [String] = []
  let onDeinit: () -> Void

  init(onDeinit: @escaping () -> Void = {}) { self.onDeinit = onDeinit }
  deinit { onDeinit() }

  var delegate: Multicast.Delegate {
    Multicast.Delegate(
      function: { context, event, payload, size in
        let listener = Unmanaged<Listener>.fromOpaque(context!).takeUnretainedValue()
        listener.events.append(event)
        let bytes = UnsafeRawBufferPointer(start: payload, count: size)
        listener.texts.append(String(decoding: bytes, as: UTF8.self))
      }, context: Unmanaged.passUnretained(self).toOpaque())
  }

  /// Returns a delegate that holds a reference, and the options that release this reference.
  func retained() -> (Multicast.Delegate, Multicast.AddOptions) {
    _ = Unmanaged.passRetained(self)
    var options = Multicast.AddOptions.default
    options.release = { Unmanaged<Listener>.fromOpaque($0!).release() }
    return (delegate, options)
  }
}

@Suite struct MulticastTests {
  let target = Multicast.create()

  @Test func invokeReachesSwiftObjects() {
    let (first, second) = (Listener(), Listener())
    #expect(target.add(first.delegate, options: nil, token: nil) == .ok)
    #expect(target.add(second.delegate, options: nil, token: nil) == .ok)
    #expect(target.invoke(event: 7, payload: "hello", size: 5) == 2)
    #expect(first.events == [7] && second.events == [7])
    #expect(first.texts == ["hello"])
    #expect(target.destroy() == .ok)
  }

  @Test func removedObjectsAreNotCalled() {
    let listener = Listener()
    target.add(listener.delegate, options: nil, token: nil)
    target.add(listener.delegate, options: nil, token: nil)
    #expect(target.removeEvery(listener.delegate) == .ok)
    #expect(target.invoke(event: 0, payload: nil, size: 0) == 0)
    #expect(listener.events.isEmpty)
    target.destroy()
  }

  @Test func releaseReleasesTheReference() {
    var isGone = false
    withUnsafeMutablePointer(to: &isGone) { isGone in
      do {
        var (delegate, options) = Listener(onDeinit: { isGone.pointee = true }).retained()
        var token = Multicast.Token()
        #expect(target.add(delegate, options: &options, token: &token) == .ok)
        #expect(target.invoke(event: 1, payload: nil, size: 0) == 1)
        #expect(!isGone.pointee)
        #expect(token.remove() == .ok)
      }
      #expect(isGone.pointee)
    }
    target.destroy()
  }

  @Test func failedAddReleasesToo() {
    var isGone = false
    withUnsafeMutablePointer(to: &isGone) { isGone in
      var (delegate, options) = Listener(onDeinit: { isGone.pointee = true }).retained()
      let status = Multicast().add(delegate, options: &options, token: nil)
      #expect(status == .invalidHandle)
      #expect(isGone.pointee)
    }
    target.destroy()
  }

  @Test func closuresAreVisitedUntilOneAccepts() {
    final class Handler {
      let accepts: (Int) -> Bool
      init(_ accepts: @escaping (Int) -> Bool) { self.accepts = accepts }
    }
    struct Question {
      let number: Int
      var answer: Int?
      var asked = 0
    }
    let handlers = [3, 5, 7].map { divisor in Handler { $0 % divisor == 0 } }
    for handler in handlers {
      let context = Unmanaged.passUnretained(handler).toOpaque()
      target.add(
        Multicast.Delegate(function: { _, _, _, _ in }, context: context), options: nil, token: nil)
    }
    var question = Question(number: 10)
    let visited = target.visit(
      { context, delegate in
        let question = context!.assumingMemoryBound(to: Question.self)
        let handler = Unmanaged<Handler>.fromOpaque(delegate.pointee.context!).takeUnretainedValue()
        question.pointee.asked += 1
        guard handler.accepts(question.pointee.number) else { return true }
        question.pointee.answer = question.pointee.asked
        return false
      }, context: &question)
    #expect(visited == 2)
    #expect(question.answer == 2)
    target.destroy()
  }

  @Test func prioritiesAndFlagsComeThrough() {
    let listener = Listener()
    var options = Multicast.AddOptions.default
    options.priority = -3
    options.flags = MULTICAST_ONCE | MULTICAST_UNIQUE
    options.events = 1 << 2
    #expect(target.add(listener.delegate, options: &options, token: nil) == .ok)
    #expect(target.invoke(event: 1, payload: nil, size: 0) == 0)
    #expect(target.invoke(event: 2, payload: nil, size: 0) == 1)
    #expect(target.count == 0)
    target.destroy()
  }

  @Test func statusesHaveNamesAndTexts() {
    let timeout = Int64(Multicast.Status.timeout.rawValue)
    #expect(String(cString: Multicast.Status.name(of: timeout)) == "MULTICAST_ERROR_TIMEOUT")
    #expect(String(cString: Multicast.Status.message(of: timeout)) == "the time was up")
    #expect(Multicast.libraryVersion >> 16 == UInt32(MULTICAST_VERSION_MAJOR))
    // A status has the same size as the number that C returns. The status may be a number for which
    // this header has no name.
    #expect(MemoryLayout<Multicast.Status>.size == MemoryLayout<Multicast.StatusNumber>.size)
    #expect(Multicast.Status(rawValue: -1000)?.rawValue == -1000)
  }

  @Test func handlesOfNothingAreRefused() {
    #expect(!Multicast().isValid && !Multicast.Lifetime().isValid && !Multicast.Queue().isValid)
    #expect(Multicast.Token().remove() == .invalidHandle && !Multicast.Token().isValid)
    #expect(Multicast().count == Int64(Multicast.Status.invalidHandle.rawValue))
    var status = Multicast.Status.ok
    #expect(Multicast().removeAll(withinNanoseconds: 0, status: &status) < 0)
    #expect(status == .invalidHandle)
    var options = Multicast.Queue.Options.default
    options.capacity = 1 << 40
    #expect(!Multicast.Queue.create(&options).isValid)
    #expect(Multicast.createError == .invalidArgument)
  }

  @Test func queuesRunCallsLater() {
    var settings = Multicast.Queue.Options.default
    settings.capacity = 1
    settings.overflow = Multicast.Queue.Overflow.dropOldest.rawValue
    let queue = Multicast.Queue.create(&settings)
    let lifetime = Multicast.Lifetime.create()
    let listener = Listener()
    var options = Multicast.AddOptions.default
    options.queue = queue
    options.lifetime = lifetime
    #expect(target.add(listener.delegate, options: &options, token: nil) == .ok)
    #expect(lifetime.count == 1)
    for event in 0..<2 { target.invoke(event: UInt32(event), payload: "hello", size: 5) }
    #expect(queue.wait(withinNanoseconds: .max) == 1)
    #expect(listener.events.isEmpty && queue.descriptor >= 0)
    #expect(queue.run(max: 0) == 1)
    #expect(listener.events == [1] && listener.texts == ["hello"])
    var statistics = Multicast.Queue.Statistics.default
    #expect(queue.getStatistics(&statistics) == .ok)
    #expect(statistics.dropped == 1 && statistics.delivered == 1)
    #expect(lifetime.end() == .ok && target.count == 0)
    #expect(queue.destroy() == .ok && target.destroy() == .ok)
  }

  @Test func registrationsSayWhatTheyAre() {
    let listener = Listener()
    var token = Multicast.Token()
    target.add(listener.delegate, options: nil, token: &token)
    #expect(token.pause() == .ok)
    var registration = Multicast.Registration.default
    #expect(registration.delegate.function == nil)
    #expect(token.getRegistration(&registration) == .ok)
    #expect(registration.isPaused && registration.target.id == target.id)
    #expect(registration.delegate.context == listener.delegate.context)
    var delegates = [Multicast.Delegate()]
    #expect(target.list(&delegates, capacity: 1) == 1 && target.contains(delegates[0]))
    #expect(target.destroy() == .ok && !token.isValid)
  }

  @Test func broadcastersKnowMulticastsByName() {
    let door = Multicast.Broadcaster.create(nil)
    let listener = Listener()
    #expect(door.register("Door", observer: listener.delegate, options: nil, token: nil) == .ok)
    #expect(door.notify("Door", event: 3, payload: nil, size: 0) == 1)
    var invocation = Multicast.Invocation.default
    invocation.event = 4
    var outcome = Multicast.Outcome.default
    #expect(door.multicast(named: "Door").invoke(with: &invocation, outcome: &outcome) == 1)
    #expect(outcome.called == 1 && listener.events == [3, 4])
    #expect(door.unregister("Door", observer: listener.delegate) == .ok)
    #expect(door.destroy() == .ok)
  }

  @Test func invokeOnDispatchThreadsWhileAddingAndRemoving() {
    let target = self.target
    nonisolated(unsafe) let counts = UnsafeMutablePointer<Int>.allocate(capacity: 4)
    DispatchQueue.concurrentPerform(iterations: 4) { index in
      counts[index] = 0
      for _ in 0..<300 {
        let listener = Listener()
        var token = Multicast.Token()
        target.add(listener.delegate, options: nil, token: &token)
        target.visit({ _, _ in true }, context: nil)
        // The listener may be freed now, because it is not being called.
        if token.remove() == .ok { counts[index] += 1 }
      }
    }
    #expect((0..<4).allSatisfy { counts[$0] == 300 })
    #expect(target.count == 0)
    counts.deallocate()
    #expect(target.destroy() == .ok)
  }

  @Test func swiftTasksMayInvoke() async {
    let target = self.target
    let listener = Listener()
    target.add(listener.delegate, options: nil, token: nil)
    await Task.detached { _ = target.invoke(event: 9, payload: nil, size: 0) }.value
    #expect(target.remove(listener.delegate) == .ok)
    #expect(listener.events == [9])
    #expect(target.destroy() == .ok)
  }
}
