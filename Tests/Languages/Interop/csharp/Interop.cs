// Uses libmulticast from C#, with Mono or .NET on Linux. The argument is the path of
// libmulticast.so.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

// ---- Declarations from multicast.h --------------------------------------------------------------

enum Status { Ok = 0, InvalidHandle = -10, NotFound = -30 }

struct Multicast { public ulong Id; }
struct Token { public ulong Id; }
struct Lifetime { public ulong Id; }
struct Queue { public ulong Id; }

delegate void Function(IntPtr context, uint @event, IntPtr payload, UIntPtr size);
delegate void Release(IntPtr context);

// Function pointers are IntPtr instead of a delegate type. For a delegate type, the marshaller
// would create a pointer, and equal delegates must have equal pointers.
struct Delegate { public IntPtr Function, Context; }

struct Options {
  public uint StructSize, Flags;
  public int Priority;
  public uint Reserved;
  public ulong Events;
  public Lifetime Lifetime;
  public Queue Queue;
  public IntPtr Release, Lock, Unlock;
}

struct Stats {
  public uint StructSize, Flags;
  public ulong Pending, Queued, Delivered, Refused, Dropped, Retracted, Coalesced, Highest;
}

static class Library {
  // An array of blittable structs is passed as a pointer to its first element, and null as null.
  public delegate uint GetVersion();
  public delegate IntPtr GetName(long status);
  public delegate Multicast NewMulticast();
  public delegate Status DoMulticast(Multicast target);
  [return: MarshalAs(UnmanagedType.I1)] public delegate bool AskMulticast(Multicast target);
  public delegate long CountMulticast(Multicast target);
  public delegate Status DoAdd(Multicast target, Delegate d, Options[] options, Token[] token);
  public delegate Status DoRemove(Multicast target, Delegate d);
  public delegate long DoInvoke(Multicast target, uint @event, byte[] payload, UIntPtr size);
  public delegate Status DoToken(Token token);
  [return: MarshalAs(UnmanagedType.I1)] public delegate bool AskToken(Token token);
  public delegate Lifetime NewLifetime();
  public delegate Status DoLifetime(Lifetime lifetime);
  public delegate Queue NewQueue(IntPtr options);
  public delegate Status DoQueue(Queue queue);
  public delegate int GetDescriptor(Queue queue);
  public delegate long DoRun(Queue queue, UIntPtr max);
  public delegate Status GetStats(Queue queue, ref Stats stats);

#pragma warning disable 0649 // set by Open()
  public static GetVersion version;
  public static GetName status_name;
  public static NewMulticast create;
  public static DoMulticast destroy;
  public static AskMulticast is_valid;
  public static CountMulticast count;
  public static DoAdd add;
  public static DoRemove remove;
  public static DoInvoke invoke;
  public static DoToken token_remove;
  public static AskToken token_is_valid;
  public static NewLifetime lifetime_create;
  public static DoLifetime lifetime_end;
  public static NewQueue queue_create;
  public static DoQueue queue_destroy, queue_start;
  public static GetDescriptor queue_fd;
  public static DoRun queue_run;
  public static GetStats queue_get_stats;
#pragma warning restore 0649

  [DllImport("libdl.so.2")] static extern IntPtr dlopen(string path, int flags);
  [DllImport("libdl.so.2")] static extern IntPtr dlsym(IntPtr library, string name);

  /// Sets each field to the function of the same name.
  public static void Open(string path) {
    const int RTLD_NOW = 2;
    IntPtr library = dlopen(path, RTLD_NOW);
    if (library == IntPtr.Zero) throw new DllNotFoundException(path);
    foreach (var field in typeof(Library).GetFields()) {
      IntPtr symbol = dlsym(library, "multicast_" + field.Name);
      if (symbol == IntPtr.Zero) throw new EntryPointNotFoundException(field.Name);
      field.SetValue(null, Marshal.GetDelegateForFunctionPointer(symbol, field.FieldType));
    }
  }
}

static class Interop {
  // ---- Checks and delegates ---------------------------------------------------------------------

  static int checks, failures;

  static void Check<T>(T actual, T expected, [CallerFilePath] string file = "",
                       [CallerLineNumber] int line = 0) {
    Interlocked.Increment(ref checks);
    if (EqualityComparer<T>.Default.Equals(actual, expected)) return;
    Interlocked.Increment(ref failures);
    string source = File.ReadLines(file).ElementAt(line - 1).Trim();
    Console.WriteLine($"{file}:{line}: {source}: {actual} is not {expected}");
  }

  static readonly List<string> calls = new List<string>(), released = new List<string>();

  // A context is a GCHandle, because the garbage collector moves objects and does not see the
  // library's references. An exception must not pass through the library, so each callback catches
  // all exceptions.
  static void Listen(IntPtr context, uint @event, IntPtr payload, UIntPtr size) {
    var bytes = new byte[(int)size];
    if (bytes.Length > 0) Marshal.Copy(payload, bytes, 0, bytes.Length);
    calls.Add($"{GCHandle.FromIntPtr(context).Target} {@event} {Encoding.ASCII.GetString(bytes)}");
  }

  static void Free(IntPtr context) {
    var handle = GCHandle.FromIntPtr(context);
    released.Add((string)handle.Target);
    handle.Free();
  }

  // These are static, because the garbage collector would free a callback to which only the library
  // refers, and calling it would crash.
  static readonly Function listen = Listen;
  static readonly Release free = Free;
  static readonly List<Function> kept = new List<Function>();

  static Delegate Listener(string name) {
    return new Delegate { Function = Marshal.GetFunctionPointerForDelegate(listen),
                          Context = GCHandle.ToIntPtr(GCHandle.Alloc(name)) };
  }

  static Delegate DelegateOf(Function function) {
    kept.Add(function);
    return new Delegate { Function = Marshal.GetFunctionPointerForDelegate(function) };
  }

  static Options[] NewOptions() {
    return new[] { new Options { StructSize = (uint)Marshal.SizeOf(typeof(Options)) } };
  }

  static long Invoke(Multicast target, uint @event, string text = "") {
    var bytes = Encoding.ASCII.GetBytes(text);
    return Library.invoke(target, @event, bytes, (UIntPtr)bytes.Length);
  }

  static string Taken() {
    string result = string.Join(", ", calls);
    calls.Clear();
    return result;
  }

  struct PollFd { public int Fd; public short Events, Revents; }
  [DllImport("libc")] static extern int poll(ref PollFd fds, UIntPtr count, int timeoutMs);

  static bool IsReadable(int fd) {
    const short POLLIN = 1;
    var watched = new PollFd { Fd = fd, Events = POLLIN };
    return poll(ref watched, (UIntPtr)1, 0) == 1 && watched.Revents == POLLIN;
  }

  // ---- The tests --------------------------------------------------------------------------------

  static void TestDelegates() {
    Multicast m = Library.create();
    Delegate one = Listener("one"), two = Listener("two");
    Check(Library.is_valid(m), true);
    Check(Library.add(m, one, null, null), Status.Ok);
    Check(Library.add(m, two, null, null), Status.Ok);
    GC.Collect();
    Check(Invoke(m, 7, "hel\0lo"), 2);
    Check(Taken(), "one 7 hel\0lo, two 7 hel\0lo");
    Check(Library.remove(m, one), Status.Ok);
    Check(Library.remove(m, one), Status.NotFound);
    Check(Invoke(m, 8, "x"), 1);
    Check(Taken(), "two 8 x");

    var token = new Token[1];
    var options = NewOptions();
    options[0].Lifetime = Library.lifetime_create();
    Check(Library.add(m, one, options, token), Status.Ok);
    Check(Invoke(m, 9), 2);
    Check(Taken(), "two 9 , one 9 ");
    Check(Library.lifetime_end(options[0].Lifetime), Status.Ok);
    Check(Library.lifetime_end(options[0].Lifetime), Status.InvalidHandle);
    Check(Library.count(m), 1);

    options = NewOptions();
    options[0].Priority = 1;
    options[0].Release = Marshal.GetFunctionPointerForDelegate(free);
    Check(Library.add(m, Listener("owned"), options, token), Status.Ok);
    GC.Collect();
    Check(Invoke(m, 10), 2);
    Check(Taken(), "owned 10 , two 10 ");
    Check(string.Join(", ", released), "");
    Check(Library.token_remove(token[0]), Status.Ok);
    Check(Library.token_remove(token[0]), Status.InvalidHandle);
    Check(Library.token_is_valid(token[0]), false);
    Check(string.Join(", ", released), "owned");
    Check(Library.destroy(m), Status.Ok);
    Check(Library.is_valid(m), false);
  }

  static void TestQueue() {
    Multicast m = Library.create();
    var options = NewOptions();
    options[0].Queue = Library.queue_create(IntPtr.Zero);
    int fd = Library.queue_fd(options[0].Queue);
    Check(Library.add(m, Listener("one"), options, null), Status.Ok);
    Check(IsReadable(fd), false);
    var payload = Encoding.ASCII.GetBytes("later");
    Check(Library.invoke(m, 3, payload, (UIntPtr)5), 1);
    Array.Clear(payload, 0, 5); // the queue has its own copy
    Check(Taken(), "");
    Check(IsReadable(fd), true);
    var stats = new Stats { StructSize = (uint)Marshal.SizeOf(typeof(Stats)) };
    Check(Library.queue_get_stats(options[0].Queue, ref stats), Status.Ok);
    Check((stats.Pending, stats.Queued, stats.Highest), (1ul, 1ul, 1ul));
    Check(Library.queue_run(options[0].Queue, (UIntPtr)0), 1);
    Check(Taken(), "one 3 later");
    Check(IsReadable(fd), false);
    Check(Library.queue_get_stats(options[0].Queue, ref stats), Status.Ok);
    Check((stats.Pending, stats.Delivered), (0ul, 1ul));

    // The queue's own thread is unknown to the runtime before its first call.
    int runner = 0;
    var called = new ManualResetEventSlim();
    Delegate note = DelegateOf((context, @event, bytes, size) => {
      runner = Thread.CurrentThread.ManagedThreadId;
      called.Set();
    });
    Check(Library.add(m, note, options, null), Status.Ok);
    Check(Library.queue_start(options[0].Queue), Status.Ok);
    Check(Invoke(m, 4), 2);
    Check(called.Wait(60000), true);
    Check(runner != Thread.CurrentThread.ManagedThreadId, true);
    GC.Collect(); // also suspends the queue's thread
    Check(Library.queue_destroy(options[0].Queue), Status.Ok);
    Check(Taken(), "one 4 ");
    Check(Library.destroy(m), Status.Ok);
  }

  static void TestRemovalWaitsForAnotherThread() {
    Multicast m = Library.create();
    bool done = false;
    var inside = new ManualResetEventSlim();
    Delegate slow = DelegateOf((context, @event, payload, size) => {
      inside.Set();
      Thread.Sleep(50);
      done = true;
    });
    Check(Library.add(m, slow, null, null), Status.Ok);
    var thread = new Thread(() => Check(Invoke(m, 0), 1));
    thread.Start();
    inside.Wait();
    Check(Library.remove(m, slow), Status.Ok);
    Check(done, true);
    thread.Join();
    Check(Library.destroy(m), Status.Ok);
  }

  static int Main(string[] arguments) {
    Library.Open(arguments[0]);
    Check(Library.version() >> 16, 1u);
    TestDelegates();
    TestQueue();
    TestRemovalWaitsForAnotherThread();
    Check(Invoke(new Multicast { Id = 0xDEADBEEFDEADBEEF }, 0), (long)Status.InvalidHandle);
    Check(Marshal.PtrToStringAnsi(Library.status_name(-30)), "MULTICAST_ERROR_NOT_FOUND");
    Console.WriteLine(failures == 0 ? $"csharp: {checks} checks passed"
                                    : $"csharp: {failures} of {checks} checks failed");
    return failures == 0 ? 0 : 1;
  }
}
