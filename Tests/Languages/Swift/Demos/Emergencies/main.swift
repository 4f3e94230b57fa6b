import MulticastSwift

// Creates a dispatch system with its delegates, lists the delegates, and removes one of them.

public protocol EmergencyResponding {
  func notifyFire(at location: String)
  func notifyCarCrash(at location: String)
}

public class FireStation: EmergencyResponding {
  public func notifyFire(at location: String) { print("fire station: fire at \(location)") }
  public func notifyCarCrash(at location: String) { print("fire station: crash at \(location)") }
}

public class PoliceStation: EmergencyResponding {
  public func notifyFire(at location: String) { print("police station: fire at \(location)") }
  public func notifyCarCrash(at location: String) { print("police station: crash at \(location)") }
}

public class DispatchSystem {
  let multicastDelegate: MulticastDelegate<EmergencyResponding>

  init(delegates: [EmergencyResponding]) {
    multicastDelegate = MulticastDelegate<EmergencyResponding>(delegates: delegates)
  }
}

var policeStation: PoliceStation = PoliceStation()
var fireStation: FireStation = FireStation()
let dispatch = DispatchSystem(delegates: [policeStation, fireStation])

print("delegates: \(dispatch.multicastDelegate.delegates.map { type(of: $0) })")
dispatch.multicastDelegate.removeDelegate(policeStation)
print("delegates: \(dispatch.multicastDelegate.delegates.map { type(of: $0) })")
dispatch.multicastDelegate.invokeDelegates { $0.notifyCarCrash(at: "the bridge") }
