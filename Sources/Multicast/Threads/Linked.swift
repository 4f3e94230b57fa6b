import Synchronization

/// An element of a list that is linked in one direction.
protocol Linked: ~Copyable {
  var next: UnsafeMutablePointer<Self>? { get set }
}

extension UnsafeMutablePointer where Pointee: Linked & ~Copyable {
  /// The first element from this one on for which it is true.
  func first(where isWanted: (Self) -> Bool) -> Self? {
    var next: Self? = self
    while let current = next, !isWanted(current) { next = current.pointee.next }
    return next
  }

  /// Takes this element out of the list that begins with `first`, if it is there.
  func unlink(from first: inout Self?) {
    if first == self { return first = pointee.next }
    var other = first
    while let current = other {
      if current.pointee.next == self { current.pointee.next = pointee.next }
      other = current.pointee.next
    }
  }
}

extension Atomic {
  /// Of an atomic in memory that stays where it is: a slot, a record or a block.
  var address: UnsafeMutablePointer<Self> {
    withUnsafePointer(to: self) { UnsafeMutablePointer(mutating: $0) }
  }
}
