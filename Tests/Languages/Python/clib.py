"""Lets tests call the C library through ctypes, like C code in the same process."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import multicast

Function = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t)


class Delegate(ctypes.Structure):
    _fields_ = [("function", Function), ("context", c_void_p)]


class CreateOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("reentry", c_uint32), ("label", c_char_p), ("replay", c_uint32),
        ("flags", c_uint32), ("others", c_void_p * 6)]


class AddOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("priority", c_int32), ("reserved", c_uint32),
        ("events", c_uint64), ("lifetime", c_uint64), ("queue", c_uint64), ("others", c_void_p * 4)]


class QueueOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("capacity", c_size_t), ("overflow", c_uint32),
        ("reserved", c_uint32), ("others", c_void_p * 5)]


lib = ctypes.CDLL(str(Path(multicast.__file__).with_name("libmulticast.so.1")))
for name, result, parameters in [
        ("multicast_create", c_uint64, []),
        ("multicast_create_with", c_uint64, [POINTER(CreateOptions)]),
        ("multicast_is_valid", ctypes.c_bool, [c_uint64]),
        ("multicast_count", c_int64, [c_uint64]),
        ("multicast_add", c_int32, [c_uint64, Delegate, c_void_p, POINTER(c_uint64)]),
        ("multicast_invoke", c_int64, [c_uint64, c_uint32, c_char_p, c_size_t]),
        ("multicast_token_remove", c_int32, [c_uint64]),
        ("multicast_token_remove_within", c_int32, [c_uint64, c_uint64]),
        ("multicast_queue_create", c_uint64, [POINTER(QueueOptions)]),
        ("multicast_queue_run", c_int64, [c_uint64, c_size_t]),
        ("multicast_queue_start", c_int32, [c_uint64]),
        ("multicast_broadcaster_default", c_uint64, []),
        ("multicast_broadcaster_notify", c_int64, [c_uint64, c_char_p, c_uint32, c_char_p, c_size_t])]:
    getattr(lib, name).restype, getattr(lib, name).argtypes = result, parameters
