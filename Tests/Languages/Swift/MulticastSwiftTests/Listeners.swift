import Foundation
import Synchronization

/// The protocol of the delegates in the tests.
protocol Listener: AnyObject, Sendable {
  func hear(_ text: String)
}

/// A protocol that is not restricted to classes, so that a value of type `any OpenListener` has
/// five words.
protocol OpenListener: Sendable {
  func hear(_ text: String)
}

/// Records the received texts in order, with the names of the listeners.
final class Diary: Sendable {
  private let lines = Locked<[String]>([])

  func write(_ line: String) { lines.withLock { $0.append(line) } }

  /// Returns all lines and clears the diary.
  func read() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}

class Ear: Listener, OpenListener, CustomStringConvertible, @unchecked Sendable {
  let description: String
  let diary: Diary
  let onDeinit: (@Sendable (Ear) -> Void)?

  init(_ name: String, _ diary: Diary, onDeinit: (@Sendable (Ear) -> Void)? = nil) {
    description = name
    self.diary = diary
    self.onDeinit = onDeinit
  }

  deinit { onDeinit?(self) }

  func hear(_ text: String) { diary.write("\(self) \(text)") }
}

final class SharpEar: Ear, @unchecked Sendable {
  override func hear(_ text: String) { diary.write("\(self) sharply \(text)") }
}

/// A delegate that is a value type.
struct Note: OpenListener {
  let diary: Diary
  func hear(_ text: String) { diary.write("note \(text)") }
}

/// A gate that is opened once and then stays open. Any number of threads can wait until the gate is
/// open.
final class Gate: Sendable {
  private let isOpen = Atomic(false)

  func open() { isOpen.store(true, ordering: .releasing) }

  func wait() { while !isOpen.load(ordering: .acquiring) { usleep(50) } }
}

/// A value that a lock protects. (The thread sanitizer does not support `Mutex`.)
final class Locked<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    lock.withLock { body(&value) }
  }
}

/// A protocol to which `Optional` also conforms.
protocol Named: Sendable {
  var name: String { get }
}

final class NamedObject: Named {
  let name = "object"
}

extension Optional: Named where Wrapped: Named {
  var name: String { "optional" }
}
