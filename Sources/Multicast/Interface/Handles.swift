import MulticastHeader

extension multicast { @inline(__always) var handle: Handle { Handle(id) } }
extension multicast_token { @inline(__always) var handle: Token { Token(id) } }
extension multicast_lifetime { @inline(__always) var handle: Handle { Handle(id) } }
extension multicast_queue { @inline(__always) var handle: Handle { Handle(id) } }
extension multicast_broadcaster { @inline(__always) var handle: Handle { Handle(id) } }
