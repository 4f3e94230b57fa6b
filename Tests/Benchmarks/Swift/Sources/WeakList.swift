/// Each node refers weakly to a delegate, and strongly to the next node. `add` removes an older
/// node of the same delegate and walks to the end. An invocation removes empty nodes.
final class WeakList: Contender {
  static let name = "linked list of weak references"

  private final class Node {
    weak var object: AnyObject?
    var next: Node?
  }

  private let head = Node()

  func add(_ counter: Counter) {
    remove(counter)
    var last = head
    while let next = last.next { last = next }
    let node = Node()
    node.object = counter
    last.next = node
  }

  func remove(_ counter: Counter) {
    var before = head
    while let node = before.next {
      if node.object === counter { before.next = node.next } else { before = node }
    }
  }

  func invoke(times: Int) {
    for _ in 0..<times {
      var before = head
      while let node = before.next {
        guard let object = node.object else {
          before.next = node.next
          continue
        }
        if let listener = object as? any Listener { listener.hear(1) }
        before = node
      }
    }
  }

  // Release the nodes one by one, because releasing a chain recursively uses stack in proportion to
  // its length.
  deinit { while let node = head.next { head.next = node.next } }
}
