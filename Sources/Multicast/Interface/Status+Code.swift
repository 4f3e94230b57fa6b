import CMulticast

extension Status {
  var code: multicast_status { multicast_status(rawValue: rawValue) }
}

/// The status of an operation, thrown or not.
@inline(__always)
func code(_ operation: () throws(Status) -> Status) -> multicast_status {
  do throws(Status) { return try operation().code } catch { return error.code }
}

/// The result of an operation that counts, or its status.
@inline(__always)
func counting(_ operation: () throws(Status) -> Int) -> Int64 {
  do throws(Status) { return Int64(try operation()) } catch { return error.count }
}
