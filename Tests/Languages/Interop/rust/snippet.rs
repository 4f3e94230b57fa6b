use std::{ffi::c_void, ptr, slice, str};

#[repr(C)]
#[derive(Clone, Copy)]
struct Multicast { id: u64 }

type Function = extern "C" fn(*const c_void, u32, *const c_void, usize);

#[repr(C)]
struct Delegate { function: Function, context: *const c_void }

#[link(name = "multicast")] // in edition 2024: unsafe extern "C"
extern "C" {
    fn multicast_create() -> Multicast;
    fn multicast_add(m: Multicast, d: Delegate, options: *const c_void, out: *mut u64) -> i32;
    fn multicast_remove_every(m: Multicast, d: Delegate) -> i32;
    fn multicast_invoke(m: Multicast, event: u32, payload: *const c_void, size: usize) -> i64;
}

extern "C" fn on_door(context: *const c_void, event: u32, payload: *const c_void, size: usize) {
    let name = unsafe { &*context.cast::<String>() };
    let who = unsafe { str::from_utf8_unchecked(slice::from_raw_parts(payload.cast(), size)) };
    println!("{}: {} {}", name, who, if event == 0 { "arrived" } else { "left" });
}

fn delegate(name: &String) -> Delegate {
    Delegate { function: on_door, context: (name as *const String).cast() }
}

fn main() {
    let names = ["lights".to_string(), "heating".to_string()]; // live longer than their delegates
    let door = unsafe { multicast_create() };
    assert!(door.id != 0);
    unsafe {
        for name in &names {
            multicast_add(door, delegate(name), ptr::null(), ptr::null_mut());
        }
        multicast_invoke(door, 0, "Ada".as_ptr().cast(), 3);
        multicast_remove_every(door, delegate(&names[1]));
        println!("{} called", multicast_invoke(door, 1, "Ada".as_ptr().cast(), 3));
    }
}
