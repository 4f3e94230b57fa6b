import ctypes
from ctypes import c_int64, c_size_t, c_uint32, c_uint64, c_void_p

class Multicast(ctypes.Structure):
    _fields_ = [("id", c_uint64)]

Function = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t)

class Delegate(ctypes.Structure):
    _fields_ = [("function", Function), ("context", c_void_p)]

lib = ctypes.CDLL("libmulticast.so.1")
lib.multicast_create.restype = Multicast
lib.multicast_add.argtypes = [Multicast, Delegate, c_void_p, c_void_p]
lib.multicast_remove_every.argtypes = [Multicast, Delegate]
lib.multicast_invoke.argtypes = [Multicast, c_uint32, c_void_p, c_size_t]
lib.multicast_invoke.restype = c_int64

names = {1: "lights", 2: "heating"}  # contexts are numbers; the objects stay in Python

@Function  # a global: it must live as long as it can be called
def on_door(context, event, payload, size):
    who = ctypes.string_at(payload, size).decode()
    print(f"{names[context]}: {who} {'left' if event else 'arrived'}")

door = lib.multicast_create()
lights, heating = Delegate(on_door, 1), Delegate(on_door, 2)
lib.multicast_add(door, lights, None, None)
lib.multicast_add(door, heating, None, None)
lib.multicast_invoke(door, 0, b"Ada", 3)
lib.multicast_remove_every(door, heating)
print(lib.multicast_invoke(door, 1, b"Ada", 3), "called")
