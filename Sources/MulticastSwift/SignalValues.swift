/// The success values of a signal whose events are `Result`s; see
/// ``Signal/values(bufferingPolicy:priority:)``.
public struct SignalValues<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  let results: AsyncStream<Result<Element, Failure>>

  /// The iterator of ``SignalValues``.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var results: AsyncStream<Result<Element, Failure>>.Iterator?

    /// Waits for the next value. Returns nil at the end and after an error.
    ///
    /// - Parameter actor: The caller's actor.
    /// - Throws: The first error.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      guard let result = await results?.next(isolation: actor) else { return nil }
      if case .failure = result { results = nil }
      return try result.get()
    }
  }

  /// Creates an iterator. All iterators of a sequence share its events, so each event reaches only
  /// one of them.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(results: results.makeAsyncIterator())
  }
}

extension Signal {
  /// Returns the success values of a signal whose events are `Result`s, for use with
  /// `for try await`. The sequence throws the first error and then ends.
  ///
  /// ```swift
  /// let lines = Signal<Result<String, ReadError>>()
  /// for try await line in lines.values() { print(line) }   // throws a ReadError
  /// ```
  ///
  /// If there is no error, the sequence ends in the same cases as the stream of
  /// ``events(bufferingPolicy:priority:)``.
  ///
  /// - Parameters: See ``events(bufferingPolicy:priority:)``.
  /// - Complexity: Like ``add(priority:on:once:lifetime:label:_:)-(_,Place,_,_,_,_)``.
  public func values<Value, Failure: Error>(
    bufferingPolicy: BufferingPolicy = .bufferingNewest(64), priority: Int = 0
  ) -> SignalValues<Value, Failure> where Event == Result<Value, Failure> {
    SignalValues(results: events(bufferingPolicy: bufferingPolicy, priority: priority))
  }
}
