import MulticastHeader
import MulticastShims

extension Status {
  var code: multicast_status { rawValue }
}

func code(_ operation: () throws(Status) -> Status) -> multicast_status {
  do throws(Status) { return try operation().code } catch { return error.code }
}

func counting(_ operation: () throws(Status) -> Int) -> Int64 {
  do throws(Status) { return Int64(try operation()) } catch { return error.count }
}

/// The number of removed delegates. `out` receives the status of the wait, which says whether calls
/// are still running.
func counting(
  _ out: UnsafeMutablePointer<multicast_status>?, _ removal: () throws(Status) -> Removal.Result
) -> Int64 {
  do throws(Status) {
    let outcome = try removal()
    let count = Int64(try outcome.counted())
    out?.pointee = outcome.waiting.code
    return count
  } catch {
    out?.pointee = error.code
    return error.count
  }
}

/// The handle of the object that an operation creates. If the operation fails, the result is 0, and
/// `multicast_create_error` returns the reason.
func creating(_ operation: () throws(Status) -> Handle) -> UInt64 {
  do throws(Status) {
    let handle = try operation()
    shims_set_create_error(Status.ok.code)
    return handle.rawValue
  } catch {
    shims_set_create_error(error.code)
    return 0
  }
}

/// Unlike in `Multicast.find`, the multicast may no longer exist.
func slot(of target: multicast) throws(Status) -> Multicast {
  guard let multicast = Multicast(slotOf: target.handle) else { throw .invalidHandle }
  return multicast
}

extension multicast { var handle: Handle { Handle(id) } }
extension multicast_token { var handle: Token { Token(id) } }
extension multicast_lifetime { var handle: Handle { Handle(id) } }
extension multicast_queue { var handle: Handle { Handle(id) } }
extension multicast_broadcaster { var handle: Handle { Handle(id) } }
