/// A set that holds its objects weakly.
///
/// Like `Set`, it is a value type: a copy is independent, and two threads must not change the same
/// variable at the same time. An object is no longer a member once it has been deallocated. Entries
/// of deallocated objects are removed when the set grows.
public struct WeakObjectSet<T: AnyObject>: Sequence {
  fileprivate struct Member {
    weak var object: T?
  }

  // Another object may reuse the address of a deallocated object, so an entry is valid only while
  // its weak reference is not nil.
  private var members: [ObjectIdentifier: Member] = [:]
  private var limit = 16

  /// Creates an empty set.
  public init() {}

  /// Creates a set of one object.
  public init(_ object: T) { insert(object) }

  /// Creates a set of objects.
  ///
  /// - Complexity: O(objects).
  public init(_ objects: [T]) { formUnion(objects) }

  /// The objects, in no particular order.
  ///
  /// - Complexity: O(count).
  public var allObjects: [T] { members.values.compactMap(\.object) }

  /// The number of objects.
  ///
  /// - Complexity: O(count).
  public var count: Int { members.values.count { $0.object != nil } }

  /// Whether the set is empty.
  ///
  /// - Complexity: O(count).
  public var isEmpty: Bool { members.values.allSatisfy { $0.object == nil } }

  /// Whether the set contains an object.
  ///
  /// - Complexity: O(1).
  public func contains(_ object: T) -> Bool { members[ObjectIdentifier(object)]?.object === object }

  /// Inserts an object.
  ///
  /// - Returns: The object, and whether it was inserted. It is not inserted if it is already a
  ///   member.
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

  /// Removes an object.
  ///
  /// - Returns: The object; nil if it was not a member.
  /// - Complexity: O(1).
  @discardableResult
  public mutating func remove(_ object: T) -> T? {
    members.removeValue(forKey: ObjectIdentifier(object))?.object
  }

  /// Inserts objects.
  ///
  /// - Complexity: O(objects), amortized.
  public mutating func formUnion(_ objects: some Sequence<T>) {
    for object in objects { insert(object) }
  }

  /// Removes objects.
  ///
  /// - Complexity: O(objects).
  public mutating func subtract(_ objects: some Sequence<T>) {
    for object in objects { remove(object) }
  }

  /// Creates an iterator over the current members. The iterator keeps them alive.
  ///
  /// - Complexity: O(count).
  public func makeIterator() -> IndexingIterator<[T]> { allObjects.makeIterator() }
}

extension WeakObjectSet: Sendable where T: Sendable {}
extension WeakObjectSet.Member: Sendable where T: Sendable {}
