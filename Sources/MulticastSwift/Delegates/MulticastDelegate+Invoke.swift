import CMulticast

extension MulticastDelegate {
  /// Calls `body` with each delegate, by priority, then in the order in which they were added.
  ///
  /// Typed errors need the type in the closure:
  ///
  /// ```swift
  /// try listeners.invoke { (listener) throws(Refusal) in try listener.prepare() }
  /// ```
  ///
  /// Invocations nest 256 deep on a thread. A deeper one ends the program, with a message.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is called.
  /// - Returns: How many were called.
  /// - Throws: What `body` throws.
  /// - Complexity: O(delegates). No lock, and no allocation.
  @inlinable @inline(__always)
  @discardableResult
  public func invoke<E: Error>(_ body: (P) throws(E) -> Void) throws(E) -> Int {
    var failure: E?
    // Not by `visit`: the compiler would not inline one closure that is inside another.
    // The last reference to `self` may be given up inside of a call.
    let called = withExtendedLifetime(self) {
      visitDelegates(target.id) { context, function in
        Words<P>.withDelegate(context, function) { delegate in
          do throws(E) {
            try body(delegate)
            return true
          } catch {
            failure = error
            return false
          }
        }
      }
    }
    if let failure { throw failure }
    return checkedCount(called)
  }

  /// The first answer: asks each delegate in order, until one does not return nil.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is asked.
  /// - Returns: The answer; nil if there is none.
  /// - Throws: What `body` throws.
  /// - Complexity: O(delegates). No lock, and no allocation.
  @inlinable
  public func first<Answer, E: Error>(_ body: (P) throws(E) -> Answer?) throws(E) -> Answer? {
    var answer: Answer?
    var failure: E?
    visit { delegate in
      do throws(E) {
        answer = try body(delegate)
        return answer == nil
      } catch {
        failure = error
        return false
      }
    }
    if let failure { throw failure }
    return answer
  }

  /// Passes each delegate to `body`, until it returns false. Returns how many were passed.
  @inlinable @inline(__always)
  @discardableResult
  func visit(_ body: (P) -> Bool) -> Int {
    // The last reference to `self` may be given up inside of a call.
    withExtendedLifetime(self) {
      checkedCount(visitDelegates(target.id) { Words<P>.withDelegate($0, $1, body) })
    }
  }

  /// Passes the delegate of one registration to `body`, if the registration is live and not paused.
  /// The end of the multicast ends the registration: so waiting calls do not keep the multicast.
  static func visit(_ registration: Registration, _ body: (P) -> Void) {
    let passed = visitDelegate(registration.id) { context, function in
      Words<P>.withDelegate(context, function) {
        body($0)
        return true
      }
    }
    _ = checkedCount(passed)
  }

  /// The registrations that an invocation would call now, in order.
  func registrations() -> [Registration] {
    var registrations: [Registration] = []
    visit { _ in
      registrations.append(Registration(Multicast.Token.current))
      return true
    }
    return registrations
  }
}
