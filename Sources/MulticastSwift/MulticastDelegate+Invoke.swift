import Dispatch
import MulticastHeader
import MulticastRuntime

extension MulticastDelegate {
  /// Calls `body` with each delegate, by priority, then in the order in which they were added.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is called.
  /// - Returns: How many were called.
  /// - Throws: What `body` throws.
  @inlinable @inline(__always)
  @discardableResult
  public func invoke<E: Error>(_ body: (P) throws(E) -> Void) throws(E) -> Int {
    var failure: E?
    let called = visitPointers { delegate in
      Words<P>.withDelegate(delegate) { delegate in
        do throws(E) {
          try body(delegate)
          return true
        } catch {
          failure = error
          return false
        }
      }
    }
    if let failure { throw failure }
    return called
  }

  /// The first answer: asks each delegate in order, until one does not return nil.
  ///
  /// - Parameter body: Runs on this thread. If it throws, no further delegate is asked.
  /// - Returns: The answer; nil if there is none.
  /// - Throws: What `body` throws.
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
    visitPointers { Words<P>.withDelegate($0, body) }
  }

  /// A C function cannot depend on `P`: it gets a closure that hides `P`.
  @inlinable @inline(__always)
  func visitPointers(_ body: (UnsafePointer<multicast_delegate>) -> Bool) -> Int {
    // The last reference to `self` may be given up inside of a call.
    withExtendedLifetime(self) {
      max(0, Int(Visitor.with(body) { multicast_visit(target, visitDelegate, $0) }))
    }
  }

  /// Passes the delegate of one registration to `body`, if the registration is live and not paused.
  /// The end of the multicast ends the registration: so waiting calls do not keep the multicast.
  static func visit(_ registration: Registration, _ body: (P) -> Void) {
    func visitor(_ delegate: UnsafePointer<multicast_delegate>) -> Bool {
      Words<P>.withDelegate(delegate) {
        body($0)
        return true
      }
    }
    _ = Visitor.with(visitor) { multicast_token_visit(registration.token, visitDelegate, $0) }
  }

  /// The registrations that an invocation would call now, in order.
  func registrations() -> [Registration] {
    var registrations: [Registration] = []
    visit { _ in
      registrations.append(Registration(multicast_token_current()))
      return true
    }
    return registrations
  }
}

extension MulticastDelegate where P: Sendable {
  /// Calls the delegates later, on a queue: the current delegates, except delegates that are
  /// removed or paused before their call begins. The end of the multicast removes them.
  ///
  /// - Parameters:
  ///   - queue: The queue. Each invocation is one block, so a serial queue executes them in order.
  ///   - body: Called with each delegate.
  public func invoke(on queue: DispatchQueue, _ body: @escaping @Sendable (P) -> Void) {
    let registrations = registrations()
    if registrations.isEmpty { return }
    queue.async { for registration in registrations { Self.visit(registration, body) } }
  }
}

/// The callback of the C interface, without the type of the delegates.
@usableFromInline
struct Visitor: ~Copyable {
  @usableFromInline let body: (UnsafePointer<multicast_delegate>) -> Bool

  @inlinable @inline(__always)
  init(_ body: @escaping (UnsafePointer<multicast_delegate>) -> Bool) { self.body = body }

  /// Passes the context of ``visitDelegate`` to `visit`.
  @inlinable @inline(__always)
  static func with(
    _ body: (UnsafePointer<multicast_delegate>) -> Bool,
    _ visit: (UnsafeMutableRawPointer) -> Int64
  ) -> Int64 {
    withoutActuallyEscaping(body) { body in
      var visitor = Visitor(body)
      return withUnsafeMutablePointer(to: &visitor) { visit(UnsafeMutableRawPointer($0)) }
    }
  }

  /// Passes a delegate to the closure of a context.
  static func call(
    _ context: UnsafeMutableRawPointer, _ delegate: UnsafePointer<multicast_delegate>
  ) -> Bool {
    #if WeakBoxes
      return context.assumingMemoryBound(to: Visitor.self).pointee.body(delegate)
    #else
      return multicast_swift_call(context, delegate)
    #endif
  }
}

/// The context is that of a ``Visitor``.
@usableFromInline
let visitDelegate: multicast_visitor = { Visitor.call($0!, $1!) }
