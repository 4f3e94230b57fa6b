import CMulticast
import Dispatch
import Testing

/// A Swift object as a context: its registration retains it, and `release` releases it.
final class Listener: @unchecked Sendable {
  var events: [UInt32] = []
  var texts: [String] = []
  let onDeinit: () -> Void

  init(onDeinit: @escaping () -> Void = {}) { self.onDeinit = onDeinit }
  deinit { onDeinit() }

  var delegate: multicast_delegate {
    multicast_delegate(
      function: { context, event, payload, size in
        let listener = Unmanaged<Listener>.fromOpaque(context!).takeUnretainedValue()
        listener.events.append(event)
        let bytes = UnsafeRawBufferPointer(start: payload, count: size)
        listener.texts.append(String(decoding: bytes, as: UTF8.self))
      }, context: Unmanaged.passUnretained(self).toOpaque())
  }

  /// The delegate, with a reference of its own, and the options that release that reference.
  func retained() -> (multicast_delegate, multicast_add_options) {
    _ = Unmanaged.passRetained(self)
    var options = multicast_add_options_default()
    options.release = { Unmanaged<Listener>.fromOpaque($0!).release() }
    return (delegate, options)
  }
}

@Suite struct MulticastTests {
  let target = multicast_create()

  @Test func invokeReachesSwiftObjects() {
    let (first, second) = (Listener(), Listener())
    #expect(multicast_add(target, first.delegate, nil, nil) == MULTICAST_OK.rawValue)
    #expect(multicast_add(target, second.delegate, nil, nil) == MULTICAST_OK.rawValue)
    #expect(multicast_invoke(target, 7, "hello", 5) == 2)
    #expect(first.events == [7] && second.events == [7])
    #expect(first.texts == ["hello"])
    #expect(multicast_destroy(target) == MULTICAST_OK.rawValue)
  }

  @Test func removedObjectsAreNotCalled() {
    let listener = Listener()
    multicast_add(target, listener.delegate, nil, nil)
    multicast_add(target, listener.delegate, nil, nil)
    #expect(multicast_remove_every(target, listener.delegate) == MULTICAST_OK.rawValue)
    #expect(multicast_invoke(target, 0, nil, 0) == 0)
    #expect(listener.events.isEmpty)
    multicast_destroy(target)
  }

  @Test func releaseReleasesTheReference() {
    var isGone = false
    withUnsafeMutablePointer(to: &isGone) { isGone in
      do {
        var (delegate, options) = Listener(onDeinit: { isGone.pointee = true }).retained()
        var token = multicast_token()
        #expect(multicast_add(target, delegate, &options, &token) == MULTICAST_OK.rawValue)
        #expect(multicast_invoke(target, 1, nil, 0) == 1)
        #expect(!isGone.pointee)
        #expect(multicast_token_remove(token) == MULTICAST_OK.rawValue)
      }
      #expect(isGone.pointee)
    }
    multicast_destroy(target)
  }

  @Test func failedAddReleasesToo() {
    var isGone = false
    withUnsafeMutablePointer(to: &isGone) { isGone in
      var (delegate, options) = Listener(onDeinit: { isGone.pointee = true }).retained()
      let status = multicast_add(multicast(id: 0), delegate, &options, nil)
      #expect(status == MULTICAST_ERROR_INVALID_HANDLE.rawValue)
      #expect(isGone.pointee)
    }
    multicast_destroy(target)
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
      multicast_add(
        target, multicast_delegate(function: { _, _, _, _ in }, context: context), nil, nil)
    }
    var question = Question(number: 10)
    let visited = multicast_visit(
      target,
      { context, delegate in
        let question = context!.assumingMemoryBound(to: Question.self)
        let handler = Unmanaged<Handler>.fromOpaque(delegate!.pointee.context).takeUnretainedValue()
        question.pointee.asked += 1
        guard handler.accepts(question.pointee.number) else { return true }
        question.pointee.answer = question.pointee.asked
        return false
      }, &question)
    #expect(visited == 2)
    #expect(question.answer == 2)
    multicast_destroy(target)
  }

  @Test func prioritiesAndFlagsComeThrough() {
    let listener = Listener()
    var options = multicast_add_options_default()
    options.priority = -3
    options.flags = MULTICAST_ONCE | MULTICAST_UNIQUE
    options.events = 1 << 2
    #expect(multicast_add(target, listener.delegate, &options, nil) == MULTICAST_OK.rawValue)
    #expect(multicast_invoke(target, 1, nil, 0) == 0)
    #expect(multicast_invoke(target, 2, nil, 0) == 1)
    #expect(multicast_count(target) == 0)
    multicast_destroy(target)
  }

  @Test func statusesHaveNamesAndTexts() {
    let name = String(cString: multicast_status_name(Int64(MULTICAST_ERROR_TIMEOUT.rawValue)))
    #expect(name == "MULTICAST_ERROR_TIMEOUT")
    #expect(multicast_version() >> 16 == UInt32(MULTICAST_VERSION_MAJOR))
  }

  @Test func invokeOnDispatchThreadsWhileAddingAndRemoving() {
    let target = self.target
    nonisolated(unsafe) let counts = UnsafeMutablePointer<Int>.allocate(capacity: 4)
    DispatchQueue.concurrentPerform(iterations: 4) { index in
      counts[index] = 0
      for _ in 0..<300 {
        let listener = Listener()
        var token = multicast_token()
        multicast_add(target, listener.delegate, nil, &token)
        multicast_visit(target, { _, _ in true }, nil)
        // From now on the listener may be freed: no call of it runs.
        if multicast_token_remove(token) == MULTICAST_OK.rawValue { counts[index] += 1 }
      }
    }
    #expect((0..<4).allSatisfy { counts[$0] == 300 })
    #expect(multicast_count(target) == 0)
    counts.deallocate()
    #expect(multicast_destroy(target) == MULTICAST_OK.rawValue)
  }

  @Test func swiftTasksMayInvoke() async {
    let target = self.target
    let listener = Listener()
    multicast_add(target, listener.delegate, nil, nil)
    await Task.detached { _ = multicast_invoke(target, 9, nil, 0) }.value
    #expect(multicast_remove(target, listener.delegate) == MULTICAST_OK.rawValue)
    #expect(listener.events == [9])
    #expect(multicast_destroy(target) == MULTICAST_OK.rawValue)
  }
}
