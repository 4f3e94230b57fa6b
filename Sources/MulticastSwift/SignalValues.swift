/// The values of a signal whose events are results, from
/// ``Signal/values(bufferingPolicy:priority:)``.
public struct SignalValues<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  let results: AsyncStream<Result<Element, Failure>>

  /// Takes the values out.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var results: AsyncStream<Result<Element, Failure>>.Iterator?

    /// The next value; nil at the end, and after an error.
    ///
    /// - Parameter actor: The actor of the caller.
    /// - Throws: The first error.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      guard let result = await results?.next(isolation: actor) else { return nil }
      if case .failure = result { results = nil }
      return try result.get()
    }
  }

  /// An iterator of the same stream.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(results: results.makeAsyncIterator())
  }
}

extension Signal {
  /// The values of a signal whose events are results, until one is an error: for `for try await`.
  ///
  /// ```swift
  /// let lines = Signal<Result<String, ReadError>>()
  /// for try await line in lines.values() { print(line) }   // throws a ReadError
  /// ```
  ///
  /// Besides it ends as ``events(bufferingPolicy:priority:)`` does.
  ///
  /// - Parameters: As those of ``events(bufferingPolicy:priority:)``.
  /// - Complexity: As that of ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func values<Value, Failure: Error>(
    bufferingPolicy: BufferingPolicy = .bufferingNewest(64), priority: Int = 0
  ) -> SignalValues<Value, Failure> where Event == Result<Value, Failure> {
    SignalValues(results: events(bufferingPolicy: bufferingPolicy, priority: priority))
  }
}
