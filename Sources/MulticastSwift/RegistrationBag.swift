/// Registrations of one owner, which are removed when the owner ends.
///
/// ```swift
/// private let registrations = RegistrationBag()
///
/// init(song: Song) {
///   song.titleDidChange.add { print($0) }.store(in: registrations)
/// }
/// ```
///
/// Its `deinit` never waits, as that of ``ScopedRegistration``. Any thread may use it.
public final class RegistrationBag: Sendable {
  private struct Content: Sendable {
    var registrations: [Registration] = []
    /// Registrations that have ended are dropped when there are that many.
    var limit = 16
  }

  private let content = Locked(Content())

  /// An empty bag.
  public init() {}

  deinit { for registration in takeAll() { registration.remove(within: .zero) } }

  /// How many registrations of the bag are live.
  ///
  /// - Complexity: O(registrations).
  public var count: Int { content.withLock { $0.registrations.count { $0.isValid } } }

  /// Puts a registration in.
  ///
  /// - Complexity: O(1), amortized.
  public func insert(_ registration: Registration) {
    content.withLock { content in
      if content.registrations.count >= content.limit {
        content.registrations.removeAll { !$0.isValid }
        content.limit = 16 + 2 * content.registrations.count
      }
      content.registrations.append(registration)
    }
  }

  /// Removes all registrations, and waits until no other thread is in a call of one. The bag is
  /// empty then, and may be used again.
  ///
  /// - Complexity: O(registrations).
  public func removeAll() { for registration in takeAll() { registration.remove() } }

  private func takeAll() -> [Registration] {
    content.withLock { content in
      defer { content = Content() }
      return content.registrations
    }
  }
}
