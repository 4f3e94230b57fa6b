/// An object that refers weakly to another object.
private final class Box {
  weak var object: AnyObject?

  init(_ object: AnyObject) { self.object = object }
}

/// Each invocation removes the empty boxes, and then casts the array of all objects in one step.
final class CompactedBoxes: Contender {
  static let name = "array of weak boxes, compacted by each call"
  private var boxes: [Box] = []

  private func listeners() -> [any Listener] {
    boxes = boxes.filter { box in box.object != nil }
    let objects = boxes.map { box in box.object }
    return objects as! [any Listener]
  }

  func add(_ counter: Counter) { boxes.append(Box(counter as AnyObject)) }

  func remove(_ counter: Counter) {
    if let found = boxes.firstIndex(where: { $0.object === counter }) { boxes.remove(at: found) }
  }

  func invoke(times: Int) {
    for _ in 0..<times { listeners().forEach { $0.hear(1) } }
  }
}

/// Each invocation casts the objects one by one. Empty boxes remain.
final class CastBoxes: Contender {
  static let name = "array of weak boxes, cast one by one"
  private var boxes: [Box] = []

  func add(_ counter: Counter) { boxes.append(Box(counter as AnyObject)) }

  func remove(_ counter: Counter) {
    if let found = boxes.firstIndex(where: { $0.object === counter }) { boxes.remove(at: found) }
  }

  func invoke(times: Int) {
    for _ in 0..<times {
      let listeners = boxes.compactMap { $0.object as? any Listener }
      listeners.forEach { $0.hear(1) }
    }
  }
}
