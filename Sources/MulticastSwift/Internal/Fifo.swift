/// First in, first out.
struct Fifo<Element> {
  private var elements: [Element?] = []
  private var first = 0

  var count: Int { elements.count - first }

  mutating func append(_ element: Element) { elements.append(element) }

  /// O(1), amortized: what was taken is dropped when it is half of all.
  mutating func popFirst() -> Element? {
    guard first < elements.count else { return nil }
    defer {
      elements[first] = nil
      first += 1
      if first * 2 >= elements.count {
        elements.removeFirst(first)
        first = 0
      }
    }
    return elements[first]
  }

  /// Takes one out of the middle. O(count).
  mutating func remove(where isIt: (Element) -> Bool) -> Element? {
    guard let found = elements[first...].firstIndex(where: { $0.map(isIt) ?? false }) else {
      return nil
    }
    return elements.remove(at: found)
  }
}

extension Fifo: Sendable where Element: Sendable {}
