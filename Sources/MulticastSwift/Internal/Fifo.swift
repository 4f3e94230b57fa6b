/// A first-in, first-out queue.
struct Fifo<Element> {
  private var elements: [Element?] = []
  private var first = 0

  var count: Int { elements.count - first }

  mutating func append(_ element: Element) { elements.append(element) }

  /// Removes the first element. This takes O(1) time, amortized, because the array is compacted
  /// only when half of it is unused.
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

  /// Removes the first element that satisfies a condition, in O(count) time.
  mutating func remove(where isIt: (Element) -> Bool) -> Element? {
    guard let found = elements[first...].firstIndex(where: { $0.map(isIt) ?? false }) else {
      return nil
    }
    return elements.remove(at: found)
  }
}

extension Fifo: Sendable where Element: Sendable {}
