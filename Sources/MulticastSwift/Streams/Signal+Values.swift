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
