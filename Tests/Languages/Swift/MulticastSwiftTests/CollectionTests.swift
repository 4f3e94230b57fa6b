import MulticastSwift
import Testing

@Suite struct CallNodeTests {
  let diary = Diary()

  @Test func pushesPopsAndCalls() {
    let node = CallNode<any Listener>()
    let ears = ["a", "b", "c", "d"].map { Ear($0, diary) }
    for ear in ears { node.push(ear) }
    node.push(ears[0])
    #expect(node.call { $0.hear("x") } == 4)
    #expect(diary.read() == ["b x", "c x", "d x", "a x"])
    #expect(node.pop(at: 1))
    #expect(node.pop(ears[3]) && !node.pop(ears[3]) && !node.pop(at: 2))
    node.call { $0.hear("y") }
    #expect(diary.read() == ["b y", "a y"])
    #expect(node.count == 2)
  }

  @Test func holdsWeakly() {
    let node = CallNode<any Listener>()
    node.push(Ear("a", diary))
    #expect(node.count == 0)
    #expect(node.call { $0.hear("x") } == 0)
  }

  @Test func stopsAtAnError() {
    struct Refusal: Error {}
    let node = CallNode<Ear>()
    let ears = ["a", "b"].map { Ear($0, diary) }
    for ear in ears { node.push(ear) }
    #expect(throws: Refusal.self) {
      try node.call { ear throws(Refusal) in
        ear.hear("x")
        throw Refusal()
      }
    }
    #expect(diary.read() == ["a x"])
    withExtendedLifetime(ears) {}
  }
}

@Suite struct WeakObjectSetTests {
  final class Item {}

  @Test func holdsObjectsOnce() {
    let (a, b, c) = (Item(), Item(), Item())
    var set = WeakObjectSet([a, b])
    set.insert(a)
    set.formUnion([b, c])
    #expect(set.count == 3 && set.allObjects.count == 3 && !set.isEmpty)
    #expect(set.contains(a) && set.contains(b) && set.contains(c))
    #expect(Set(set.map(ObjectIdentifier.init)) == Set([a, b, c].map(ObjectIdentifier.init)))
    set.remove(a)
    #expect(!set.contains(a) && set.count == 2)
    set.subtract([b, c])
    #expect(set.isEmpty && set.allObjects.isEmpty)
    #expect(WeakObjectSet(a).contains(a))
  }

  @Test func forgetsObjectsThatHaveEnded() {
    var set = WeakObjectSet<Item>()
    let kept = Item()
    set.insert(kept)
    for _ in 0..<1000 { set.insert(Item()) }
    #expect(set.count == 1)
    #expect(set.allObjects.first === kept)
    let others = (0..<1000).map { _ in Item() }
    #expect(others.allSatisfy { !set.contains($0) })
  }

  @Test func isAValue() {
    let (a, b) = (Item(), Item())
    let first = WeakObjectSet(a)
    var second = first
    second.insert(b)
    second.remove(a)
    #expect(first.contains(a) && !first.contains(b))
    #expect(second.contains(b) && !second.contains(a))
  }

  @Test func anIterationKeepsItsObjects() {
    var items: [Item]? = [Item(), Item()]
    let set = WeakObjectSet(items!)
    var iterator = set.makeIterator()
    items = nil
    #expect(iterator.next() != nil && iterator.next() != nil && iterator.next() == nil)
    #expect(items == nil)
  }
}
