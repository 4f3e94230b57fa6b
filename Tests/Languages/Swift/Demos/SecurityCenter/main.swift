import MulticastSwift

// A security center notifies a fire station and a hospital of a fire.

protocol FireEmergencyResponding: AnyObject {
  func notifyFire(at location: String)
}

final class FireStation: FireEmergencyResponding {
  func notifyFire(at location: String) { print("fire station: on the way to \(location)") }
}

final class HospitalEmergencyCenter: FireEmergencyResponding {
  func notifyFire(at location: String) { print("hospital: beds are ready for \(location)") }
}

final class SecurityCenter {
  static let shared = SecurityCenter()
  let multicastDelegate = MulticastDelegate<FireEmergencyResponding>()
}

let securityCenter = SecurityCenter.shared
var fireStation: FireStation! = FireStation()
let hospital = HospitalEmergencyCenter()

securityCenter.multicastDelegate.addDelegate(fireStation)
securityCenter.multicastDelegate.addDelegate(hospital)
securityCenter.multicastDelegate.notifyDelegates { $0.notifyFire(at: "the tower") }

print("--")
fireStation = nil
securityCenter.multicastDelegate.notifyDelegates { $0.notifyFire(at: "the tower") }

print("--")
securityCenter.multicastDelegate.removeDelegate(hospital)
securityCenter.multicastDelegate.notifyDelegates { $0.notifyFire(at: "the tower") }
