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
  public init(_ object: T) { insert(object) }

  /// A set of these objects.
  ///
  /// - Complexity: O(objects).
  public init(_ objects: [T]) { formUnion(objects) }

  /// The objects, in no particular order.
  ///
  /// - Complexity: O(count).
  public var allObjects: [T] { members.values.compactMap(\.object) }

  /// How many objects there are.
  ///
  /// - Complexity: O(count).
  public var count: Int { members.values.count { $0.object != nil } }

  /// Whether there are none.
  ///
  /// - Complexity: O(count).
  public var isEmpty: Bool { members.values.allSatisfy { $0.object == nil } }

  /// Whether this object is in the set.
  ///
  /// - Complexity: O(1).
  public func contains(_ object: T) -> Bool { members[ObjectIdentifier(object)]?.object === object }

  /// Puts an object in.
  ///
  /// - Returns: Whether it was not in before, and the object.
  /// - Complexity: O(1), amortized.
  @discardableResult
  public mutating func insert(_ object: T) -> (inserted: Bool, memberAfterInsert: T) {
    if contains(object) { return (false, object) }
    if members.count >= limit {
      members = members.filter { $0.value.object != nil }
      limit = 16 + 2 * members.count
    }
    members[ObjectIdentifier(object)] = Member(object: object)
    return (true, object)
  }

  /// Takes an object out.
  ///
  /// - Returns: The object; nil if it was not in.
  /// - Complexity: O(1).
  @discardableResult
  public mutating func remove(_ object: T) -> T? {
    members.removeValue(forKey: ObjectIdentifier(object))?.object
  }

  /// Puts objects in.
  ///
  /// - Complexity: O(objects), amortized.
  public mutating func formUnion(_ objects: some Sequence<T>) {
    for object in objects { insert(object) }
  }

  /// Takes objects out.
  ///
  /// - Complexity: O(objects).
  public mutating func subtract(_ objects: some Sequence<T>) {
    for object in objects { remove(object) }
  }

  /// Iterates over the objects that are in the set now, and keeps them until it has ended.
  ///
  /// - Complexity: O(count).
  public func makeIterator() -> IndexingIterator<[T]> { allObjects.makeIterator() }
}

extension WeakObjectSet: Sendable where T: Sendable {}
extension WeakObjectSet.Member: Sendable where T: Sendable {}
