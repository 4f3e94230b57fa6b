//! Uses libmulticast from Rust, without crates. The argument is the path of libmulticast.so.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

// ---- Declarations from multicast.h --------------------------------------------------------------

macro_rules! handles { ($($name:ident)*) => { $(
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct $name { id: u64 }
)* } }
handles! { Multicast Token Lifetime Queue }

// This is not an enum, because a value that an enum does not have would be undefined behaviour.
type Status = i32;
const OK: Status = 0;
const INVALID_HANDLE: Status = -10;
const NOT_FOUND: Status = -30;

type Function = extern "C" fn(*mut c_void, u32, *const c_void, usize);

#[repr(C)]
#[derive(Clone, Copy)]
struct Delegate {
    function: Option<Function>,
    context: *mut c_void,
}

#[repr(C)]
struct Options {
    struct_size: u32,
    flags: u32,
    priority: i32,
    reserved: u32,
    events: u64,
    lifetime: Lifetime,
    queue: Queue,
    release: Option<extern "C" fn(*mut c_void)>,
    lock: Option<extern "C" fn(*mut c_void) -> *mut c_void>,
    unlock: Option<extern "C" fn(*mut c_void)>,
}

#[repr(C)]
#[derive(Default)]
struct Stats {
    struct_size: u32,
    flags: u32,
    pending: u64,
    queued: u64,
    delivered: u64,
    others: [u64; 4], // refused, dropped, cancelled, coalesced
    highest: u64,
}

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

#[link(name = "dl")]
extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn poll(fds: *mut PollFd, count: std::os::raw::c_ulong, timeout_ms: c_int) -> c_int;
}

macro_rules! library {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[derive(Clone, Copy)]
        struct Library { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        unsafe fn open(path: &str) -> Library {
            const RTLD_NOW: c_int = 2;
            let path = CString::new(path).unwrap();
            let library = dlopen(path.as_ptr(), RTLD_NOW);
            assert!(!library.is_null(), "cannot open {:?}", path);
            Library { $($name: {
                let symbol = dlsym(library, concat!(stringify!($name), "\0").as_ptr().cast());
                assert!(!symbol.is_null(), stringify!($name));
                std::mem::transmute(symbol)
            },)* }
        }
    };
}
library! {
    fn multicast_version() -> u32;
    fn multicast_status_name(i64) -> *const c_char;
    fn multicast_create() -> Multicast;
    fn multicast_destroy(Multicast) -> Status;
    fn multicast_is_valid(Multicast) -> bool;
    fn multicast_add(Multicast, Delegate, *const Options, *mut Token) -> Status;
    fn multicast_remove(Multicast, Delegate) -> Status;
    fn multicast_count(Multicast) -> i64;
    fn multicast_invoke(Multicast, u32, *const c_void, usize) -> i64;
    fn multicast_token_remove(Token) -> Status;
    fn multicast_token_is_valid(Token) -> bool;
    fn multicast_lifetime_create() -> Lifetime;
    fn multicast_lifetime_end(Lifetime) -> Status;
    fn multicast_queue_create(*const c_void) -> Queue;
    fn multicast_queue_destroy(Queue) -> Status;
    fn multicast_queue_fd(Queue) -> c_int;
    fn multicast_queue_run(Queue, usize) -> i64;
    fn multicast_queue_start(Queue) -> Status;
    fn multicast_queue_get_stats(Queue, *mut Stats) -> Status;
}

// ---- Checks and delegates -----------------------------------------------------------------------

static CHECKS: AtomicU32 = AtomicU32::new(0);
static FAILURES: AtomicU32 = AtomicU32::new(0);

macro_rules! check {
    ($actual:expr, $expected:expr) => {
        let (actual, expected) = ($actual, $expected);
        CHECKS.fetch_add(1, SeqCst);
        if actual != expected {
            FAILURES.fetch_add(1, SeqCst);
            let (file, line, text) = (file!(), line!(), stringify!($actual));
            println!("{}:{}: {}: {:?} is not {:?}", file, line, text, actual, expected);
        }
    };
}

type Call = (&'static str, u32, Vec<u8>);

/// A context. It must be `Sync`, because delegates are called on every thread that invokes.
struct Listener {
    name: &'static str,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// A panic must not unwind through the library, so this program is compiled with `-C panic=abort`.
extern "C" fn listen(context: *mut c_void, event: u32, payload: *const c_void, size: usize) {
    let bytes = match size {
        0 => &[], // a slice must not have a null pointer, even if it is empty
        _ => unsafe { std::slice::from_raw_parts(payload.cast::<u8>(), size) },
    };
    let listener = unsafe { &*context.cast::<Listener>() };
    listener.calls.lock().unwrap().push((listener.name, event, bytes.to_vec()));
}

extern "C" fn release(context: *mut c_void) {
    drop(unsafe { Arc::from_raw(context.cast::<Listener>()) });
}

/// The context of `wait`, which reports that a call has begun and counts the calls that have
/// returned.
struct Slow {
    begun: Mutex<mpsc::Sender<()>>,
    done: AtomicU32,
}

extern "C" fn wait(context: *mut c_void, _: u32, _: *const c_void, _: usize) {
    let slow = unsafe { &*context.cast::<Slow>() };
    slow.begun.lock().unwrap().send(()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    slow.done.fetch_add(1, SeqCst);
}

/// Borrows the context. The context must be valid until the delegate is removed.
fn delegate<T: Sync>(function: Function, context: &T) -> Delegate {
    Delegate { function: Some(function), context: context as *const T as *mut c_void }
}

fn options() -> Options {
    let struct_size = std::mem::size_of::<Options>() as u32;
    Options { struct_size, ..unsafe { std::mem::zeroed() } }
}

fn readable(fd: c_int) -> bool {
    const POLLIN: i16 = 1;
    let mut watched = PollFd { fd, events: POLLIN, revents: 0 };
    unsafe { poll(&mut watched, 1, 0) == 1 && watched.revents == POLLIN }
}

// ---- The tests ----------------------------------------------------------------------------------

unsafe fn test(l: Library) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let taken = || std::mem::take(&mut *calls.lock().unwrap());
    let listener = |name| Arc::new(Listener { name, calls: calls.clone() });
    let (one, two) = (listener("one"), listener("two"));
    let (first, second) = (delegate(listen, &*one), delegate(listen, &*two));
    let invoke = |m, event, text: &[u8]| {
        (l.multicast_invoke)(m, event, text.as_ptr().cast(), text.len())
    };

    check!((l.multicast_version)() >> 16, 1);
    let m = (l.multicast_create)();
    check!((l.multicast_is_valid)(m), true);
    check!((l.multicast_add)(m, first, null(), null_mut()), OK);
    check!((l.multicast_add)(m, second, null(), null_mut()), OK);
    check!(invoke(m, 7, b"hel\0lo"), 2);
    check!(taken(), [("one", 7, b"hel\0lo".to_vec()), ("two", 7, b"hel\0lo".to_vec())]);
    check!((l.multicast_remove)(m, first), OK);
    check!((l.multicast_remove)(m, first), NOT_FOUND);
    check!(invoke(m, 8, b"x"), 1);
    check!(taken(), [("two", 8, b"x".to_vec())]);

    // The delegate has a lifetime.
    let lifetime = (l.multicast_lifetime_create)();
    let weakly = Options { lifetime, ..options() };
    check!((l.multicast_add)(m, first, &weakly, null_mut()), OK);
    check!((l.multicast_invoke)(m, 9, null(), 0), 2);
    check!(taken(), [("two", 9, vec![]), ("one", 9, vec![])]);
    check!((l.multicast_lifetime_end)(lifetime), OK);
    check!((l.multicast_lifetime_end)(lifetime), INVALID_HANDLE);
    check!((l.multicast_count)(m), 1);

    // The registration holds a reference to the context, which `release` drops.
    let mut token = Token { id: 0 };
    let owning = Options { priority: 1, release: Some(release), ..options() };
    let context = Arc::into_raw(one.clone()) as *mut c_void;
    let owned = Delegate { function: Some(listen), context };
    check!((l.multicast_add)(m, owned, &owning, &mut token), OK);
    check!(invoke(m, 10, b""), 2);
    check!(taken(), [("one", 10, vec![]), ("two", 10, vec![])]);
    check!(Arc::strong_count(&one), 2);
    check!((l.multicast_token_remove)(token), OK);
    check!((l.multicast_token_remove)(token), INVALID_HANDLE);
    check!((l.multicast_token_is_valid)(token), false);
    check!(Arc::strong_count(&one), 1);

    // Removal waits for a call on another thread.
    let (begun, begins) = mpsc::channel();
    let slow = Slow { begun: Mutex::new(begun), done: AtomicU32::new(0) };
    let waiting = delegate(wait, &slow);
    check!((l.multicast_add)(m, waiting, null(), null_mut()), OK);
    let thread = std::thread::spawn(move || (l.multicast_invoke)(m, 0, null(), 0));
    begins.recv().unwrap();
    check!((l.multicast_remove)(m, waiting), OK);
    check!(slow.done.load(SeqCst), 1);
    check!(thread.join().unwrap(), 2);
    taken();

    // This thread runs a queue. Later another queue has its own thread.
    let queue = (l.multicast_queue_create)(null());
    let queued = Options { queue, ..options() };
    let fd = (l.multicast_queue_fd)(queue);
    check!((l.multicast_remove)(m, second), OK);
    check!((l.multicast_add)(m, first, &queued, null_mut()), OK);
    check!(readable(fd), false);
    let mut payload = *b"later";
    check!(invoke(m, 3, &payload), 1);
    payload.fill(b'X'); // the queue has its own copy
    check!(taken(), []);
    check!(readable(fd), true);
    let mut stats = Stats { struct_size: std::mem::size_of::<Stats>() as u32, ..Stats::default() };
    check!((l.multicast_queue_get_stats)(queue, &mut stats), OK);
    check!((stats.pending, stats.queued, stats.highest), (1, 1, 1));
    check!((l.multicast_queue_run)(queue, 0), 1);
    check!(taken(), [("one", 3, b"later".to_vec())]);
    check!(readable(fd), false);
    check!((l.multicast_queue_get_stats)(queue, &mut stats), OK);
    check!((stats.pending, stats.delivered, stats.others), (0, 1, [0; 4]));
    check!((l.multicast_add)(m, waiting, &queued, null_mut()), OK);
    check!((l.multicast_queue_start)(queue), OK);
    check!(invoke(m, 4, b"x"), 2);
    check!(begins.recv_timeout(Duration::from_secs(60)), Ok(()));
    check!((l.multicast_queue_destroy)(queue), OK);
    check!(slow.done.load(SeqCst), 2);
    check!(taken(), [("one", 4, b"x".to_vec())]);
    check!((l.multicast_count)(m), 0);

    // Calls with wrong arguments return errors.
    let forged = Multicast { id: 0xDEADBEEFDEADBEEF };
    check!(invoke(forged, 0, b""), INVALID_HANDLE.into());
    let name = |status: Status| {
        CStr::from_ptr((l.multicast_status_name)(status.into())).to_str().unwrap()
    };
    check!(name(NOT_FOUND), "MULTICAST_ERROR_NOT_FOUND");
    check!((l.multicast_destroy)(m), OK);
    check!((l.multicast_is_valid)(m), false);
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of libmulticast.so");
    unsafe { test(open(&path)) };
    let (checks, failures) = (CHECKS.load(SeqCst), FAILURES.load(SeqCst));
    if failures > 0 {
        println!("rust: {} of {} checks failed", failures, checks);
        std::process::exit(1);
    }
    println!("rust: {} checks passed", checks);
}
