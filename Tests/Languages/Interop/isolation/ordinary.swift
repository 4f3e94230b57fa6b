// Ordinary Swift code that needs the Swift runtime for classes, hashing, strings and existentials.

private final class Node {
  var next: Node?
}

@_cdecl("ordinary_swift_work")
public func ordinary_swift_work(_ count: Int) -> Int {
  var names: [String: Any] = [:]
  var head: Node? = nil
  for index in 0..<count {
    let node = Node()
    node.next = head
    head = node
    names["name \(index)"] = node
  }
  return names.values.compactMap { $0 as? Node }.count
}
