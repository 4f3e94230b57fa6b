import MulticastSwift

final class WeakMulticast: Contender {
  static let name = "MulticastDelegate"
  private let delegates = MulticastDelegate<any Listener>()

  func add(_ counter: Counter) { delegates.add(counter) }

  func remove(_ counter: Counter) { delegates.remove(counter) }

  func invoke(times: Int) { for _ in 0..<times { delegates.invoke { $0.hear(1) } } }
}

final class StrongMulticast: Contender {
  static let name = "MulticastDelegate, strong"
  private let delegates = MulticastDelegate<any Listener>(reference: .strong)

  func add(_ counter: Counter) { delegates.add(counter) }

  func remove(_ counter: Counter) { delegates.remove(counter) }

  func invoke(times: Int) { for _ in 0..<times { delegates.invoke { $0.hear(1) } } }
}

final class SignalOfClosures: Contender {
  static let name = "Signal, closures with [weak self]"
  private let signal = Signal<Int>()
  private var registrations: [ObjectIdentifier: Registration] = [:]

  func add(_ counter: Counter) {
    registrations[ObjectIdentifier(counter)] = signal.add { [weak counter] in counter?.hear($0) }
  }

  func remove(_ counter: Counter) {
    registrations.removeValue(forKey: ObjectIdentifier(counter))?.remove()
  }

  func invoke(times: Int) { for _ in 0..<times { signal.invoke(1) } }
}
