/// Holds registrations and removes them when it is deallocated.
///
/// Keep it in a property of the object that the registrations belong to:
///
/// ```swift
/// private let registrations = RegistrationBag()
///
/// init(song: Song) {
///   song.titleDidChange.add { print($0) }.store(in: registrations)
/// }
/// ```
///
/// Its `deinit` never waits; see ``ScopedRegistration``. Any thread may use a bag.
public final class RegistrationBag: Sendable {
  private struct Content: Sendable {
    var registrations: [Registration] = []
    /// If the bag contains this many registrations, an insertion first drops those that have been
    /// removed.
    var limit = 16
  }

  private let content = Locked(Content())

  /// Creates an empty bag.
  public init() {}

  deinit { for registration in takeAll() { registration.remove(within: .zero) } }

  /// The number of live registrations in the bag.
  ///
  /// - Complexity: O(registrations).
  public var count: Int { content.withLock { $0.registrations.count { $0.isValid } } }

  /// Puts a registration into the bag.
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

  /// Removes all registrations, and waits until no other thread is calling one of their delegates.
  /// Afterwards the bag is empty and may be used again.
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
