/// A set that does not keep its objects alive.
///
/// A value, as `Set` is: a copy is a set of its own, and two threads may not change the same
/// variable at once. Objects that have ended are not in the set any more. Their memory is given
/// back when the set grows.
public struct WeakObjectSet<T: AnyObject>: Sequence {
  fileprivate struct Member {
    weak var object: T?
  }

  // An object that has ended may leave its address to another object: a member counts only if it
  // still has its object.
  private var members: [ObjectIdentifier: Member] = [:]
  private var limit = 16

  /// An empty set.
  public init() {}

  /// A set of one object.
  public init(_ object: T) { add(object) }

  /// A set of these objects.
  public init(_ objects: [T]) { add(objects) }

  /// The objects, in no particular order.
  public var allObjects: [T] { members.values.compactMap(\.object) }

  /// How many objects there are.
  ///
  /// - Complexity: O(count).
  public var count: Int { members.values.count { $0.object != nil } }

  /// Whether there are none.
  public var isEmpty: Bool { members.values.allSatisfy { $0.object == nil } }

  /// Whether this object is in the set.
  ///
  /// - Complexity: O(1).
  public func contains(_ object: T) -> Bool { members[ObjectIdentifier(object)]?.object === object }

  /// Puts an object in.
  ///
  /// - Complexity: O(1), amortized.
  public mutating func add(_ object: T) {
    if members.count >= limit {
      members = members.filter { $0.value.object != nil }
      limit = 16 + 2 * members.count
    }
    members[ObjectIdentifier(object)] = Member(object: object)
  }

  /// Puts objects in.
  public mutating func add(_ objects: [T]) { for object in objects { add(object) } }

  /// Takes an object out, if it is in.
  ///
  /// - Complexity: O(1).
  public mutating func remove(_ object: T) {
    members.removeValue(forKey: ObjectIdentifier(object))
  }

  /// Takes objects out.
  public mutating func remove(_ objects: [T]) { for object in objects { remove(object) } }

  /// Iterates over the objects that are in the set now, and keeps them until it has ended.
  public func makeIterator() -> IndexingIterator<[T]> { allObjects.makeIterator() }
}

extension WeakObjectSet: Sendable where T: Sendable {}
extension WeakObjectSet.Member: Sendable where T: Sendable {}
