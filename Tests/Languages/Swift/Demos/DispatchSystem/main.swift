import MulticastSwift

// A dispatch system notifies stations of emergencies. The protocol is not restricted to classes.

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
  let multicastDelegate = MulticastDelegate<EmergencyResponding>()
}

let dispatch = DispatchSystem()
var policeStation: PoliceStation! = PoliceStation()
var fireStation: FireStation! = FireStation()

dispatch.multicastDelegate.addDelegate(policeStation)
dispatch.multicastDelegate.addDelegate(fireStation)
dispatch.multicastDelegate.invokeDelegates { $0.notifyFire(at: "the house") }

print("")
fireStation = nil
dispatch.multicastDelegate.invokeDelegates { $0.notifyCarCrash(at: "the garage") }
