import CMulticast
import MulticastSwift

// Uses both modules in one file: CMulticast (the C interface with Swift names) and MulticastSwift.

final class Ear: Sendable {
  func hear(_ text: String) { print(text) }
}

let listeners = MulticastDelegate<Ear>()
let ear = Ear()
let registration: Registration = listeners.add(ear)
let watch = Watch(called: { print("called", $0.registration == registration) })
listeners.setWatch(watch)
listeners.invoke { $0.hear("from Swift") }
listeners.setWatch(nil)
let removal: Removal = registration.remove()
print(removal == .ended)

let door = Multicast.create()
let ring = Multicast.Delegate(
  function: { context, event, _, _ in
    Unmanaged<Ear>.fromOpaque(context!).takeUnretainedValue().hear("from C \(event)")
  }, context: Unmanaged.passUnretained(ear).toOpaque())
var token = Multicast.Token()
let status: Multicast.Status = door.add(ring, options: nil, token: &token)
print(status == .ok, token.isValid, door.invoke(event: 7, payload: nil, size: 0))
print(door.destroy() == .ok)
