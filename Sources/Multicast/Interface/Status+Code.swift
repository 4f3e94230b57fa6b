import CMulticast

extension Status {
  var code: multicast_status { multicast_status(rawValue: rawValue) }
}

/// The status of an operation, whether it is returned or thrown.
@inline(__always)
func code(_ operation: () throws(Status) -> Status) -> multicast_status {
  do throws(Status) { return try operation().code } catch { return error.code }
}

/// The result of an operation that counts, or the status that it throws.
@inline(__always)
func counting(_ operation: () throws(Status) -> Int) -> Int64 {
  do throws(Status) { return Int64(try operation()) } catch { return error.count }
}
