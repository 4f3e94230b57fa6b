// Ordinary Swift code that needs the Swift runtime for classes, closures, dictionaries and weak
// references. All of these features call swift_* functions. Some of these functions have the same
// names as functions in the library, which is compiled as Embedded Swift.
import CMulticast

final class Greeter {
  private let greetings: [String: String]
  private(set) var greeted: [String] = []
  var onGreet: ((String) -> Void)?

  init(greetings: [String: String]) { self.greetings = greetings }
  deinit { print("swift: greeter gone") }

  func greet(_ name: String) {
    greeted.append(name)
    onGreet?("swift: \(greetings["en", default: "?"]), \(name)")
  }
}

private let greet: Multicast.Function = { context, _, payload, size in
  let greeter = Unmanaged<Greeter>.fromOpaque(context!).takeUnretainedValue()
  greeter.greet(
    String(decoding: UnsafeRawBufferPointer(start: payload, count: size), as: UTF8.self))
}

private nonisolated(unsafe) weak var last: Greeter?

/// Adds a greeter to the multicast, which then owns the greeter.
@_cdecl("greeting_join")
public func join(_ m: Multicast) -> Bool {
  let greeter = Greeter(greetings: ["en": "hello", "fr": "bonjour"])
  greeter.onGreet = { print($0) }
  last = greeter
  var options = Multicast.AddOptions.default
  options.release = { Unmanaged<Greeter>.fromOpaque($0!).release() }
  let delegate = Multicast.Delegate(
    function: greet, context: Unmanaged.passRetained(greeter).toOpaque())
  return m.add(delegate, options: &options, token: nil) == .ok
}

/// Returns the number of greetings, or -1 if the greeter has been released.
@_cdecl("greeting_count")
public func count() -> Int32 { last.map { Int32($0.greeted.count) } ?? -1 }
