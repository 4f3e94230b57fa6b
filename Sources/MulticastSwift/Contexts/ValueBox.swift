/// A delegate that is not an object, but is to be kept.
@usableFromInline
final class ValueBox<P> {
  @usableFromInline let value: P

  init(_ value: P) { self.value = value }
}
