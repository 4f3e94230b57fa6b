/// The work of a delivery, done later.
///
/// `@unchecked`: one thread runs it, and the thread that gives up the last reference comes after.
final class Work: @unchecked Sendable {
  private let body: @Sendable () -> Void
  private let registration: Registration
  private let losses: Losses?
  private var isDone = false

  init(
    _ body: @escaping @Sendable () -> Void, for registration: Registration, _ losses: Losses?
  ) {
    self.body = body
    self.registration = registration
    self.losses = losses
  }

  // Refused, dropped for newer work, or cleared.
  deinit { if !isDone, let losses, registration.isValid { losses.add() } }

  func run() {
    isDone = true
    body()
  }
}
