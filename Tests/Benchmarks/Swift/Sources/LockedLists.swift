import Synchronization

/// The usual code without a library: a lock that protects an array, which each invocation copies.
final class LockedBoxes: Contender {
  static let name = "lock and array of weak boxes"

  private final class Box: @unchecked Sendable {
    weak var listener: (any Listener)?

    init(_ listener: any Listener) { self.listener = listener }
  }

  private let boxes = Mutex<[Box]>([])

  func add(_ counter: Counter) { boxes.withLock { $0.append(Box(counter)) } }

  func remove(_ counter: Counter) {
    boxes.withLock { boxes in
      if let found = boxes.firstIndex(where: { $0.listener === counter }) {
        boxes.remove(at: found)
      }
    }
  }

  func invoke(times: Int) {
    for _ in 0..<times {
      let boxes = boxes.withLock { $0 }
      for box in boxes { box.listener?.hear(1) }
    }
  }
}

/// Like LockedBoxes, but with strong references, which keep the delegates alive.
final class LockedArray: Contender {
  static let name = "lock and array, strong"
  private let listeners = Mutex<[any Listener]>([])

  func add(_ counter: Counter) { listeners.withLock { $0.append(counter) } }

  func remove(_ counter: Counter) {
    listeners.withLock { listeners in
      if let found = listeners.firstIndex(where: { $0 === counter }) {
        listeners.remove(at: found)
      }
    }
  }

  func invoke(times: Int) {
    for _ in 0..<times {
      let listeners = listeners.withLock { $0 }
      for listener in listeners { listener.hear(1) }
    }
  }
}
