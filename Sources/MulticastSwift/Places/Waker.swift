/// The context of a delivery's `wake`.
///
/// `@unchecked`: `delivery` is set before another thread can see it.
final class Waker: @unchecked Sendable {
  private let body: @Sendable (Delivery) -> Void
  weak var delivery: Delivery?

  init(_ body: @escaping @Sendable (Delivery) -> Void) { self.body = body }

  func wake() { if let delivery { body(delivery) } }
}
