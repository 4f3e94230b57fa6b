// Uses libmulticast from Java, through JNI. The arguments are the paths of libmulticast.so and of the
// bridge.
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

public class Interop {
  // ---- The bridge -------------------------------------------------------------------------------

  static native boolean open(String path);
  static native long call(String function, long... arguments);
  static native long eventFunction();
  static native long releaseFunction();
  static native long reference(Listener listener);
  static native long address(ByteBuffer direct);
  static native String text(long address);

  interface Listener {
    void onEvent(int event, byte[] payload);
    default void onRelease() {}
  }

  // ---- Declarations from multicast.h ------------------------------------------------------------

  static final int OK = 0, INVALID_HANDLE = -10, NOT_FOUND = -30;

  // If the result of a C function is smaller than a register, the other bits are undefined.
  static int status(String function, long... arguments) { return (int) call(function, arguments); }
  static boolean ask(String function, long... arguments) {
    return (call(function, arguments) & 0xFF) != 0;
  }

  static ByteBuffer struct(int size) {
    return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder()).putInt(0, size);
  }

  // The offsets of the fields. The options end with the fields lock and unlock.
  static final int PRIORITY = 8, LIFETIME = 24, QUEUE = 32, RELEASE = 40, SIZE_OF_OPTIONS = 64;
  static final int PENDING = 8, QUEUED = 16, DELIVERED = 24, HIGHEST = 64, SIZE_OF_STATS = 72;

  /** A delegate. It consists of the bridge's function and a reference that keeps a listener alive until the
      reference is freed. */
  record Delegate(long function, long context) {
    Delegate(Listener listener) { this(eventFunction(), reference(listener)); }
  }

  static int add(long target, Delegate d, ByteBuffer options, ByteBuffer token) {
    long optionsAddress = options == null ? 0 : address(options);
    long tokenAddress = token == null ? 0 : address(token);
    return status("multicast_add", target, d.function, d.context, optionsAddress, tokenAddress);
  }

  static int remove(long target, Delegate d) {
    return status("multicast_remove", target, d.function, d.context);
  }

  static ByteBuffer direct(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocateDirect(bytes.length).put(bytes);
  }

  static long invoke(long target, int event, String text) {
    ByteBuffer payload = direct(text);
    return call("multicast_invoke", target, event, address(payload), payload.capacity());
  }

  static boolean isReadable(long descriptor) {
    final short pollin = 1;
    ByteBuffer watched = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    watched.putInt(0, (int) descriptor).putShort(4, pollin);
    return status("poll", address(watched), 1, 0) == 1 && watched.getShort(6) == pollin;
  }

  // ---- Checks and delegates ---------------------------------------------------------------------

  static int checks = 0, failures = 0;

  static void check(String expression, Object actual, Object expected) {
    checks++;
    if (Objects.equals(actual, expected)) return;
    failures++;
    StackTraceElement caller = new Throwable().getStackTrace()[1];
    System.out.printf("%s:%d: %s: %s is not %s%n", caller.getFileName(), caller.getLineNumber(),
        expression, actual, expected);
  }

  static final List<String> calls = Collections.synchronizedList(new ArrayList<>());

  static List<String> taken() {
    List<String> result = List.copyOf(calls);
    calls.clear();
    return result;
  }

  record Named(String name) implements Listener {
    public void onEvent(int event, byte[] payload) {
      calls.add(name + " " + event + " " + new String(payload, StandardCharsets.US_ASCII));
    }
    public void onRelease() { calls.add(name + " released"); }
  }

  // ---- The tests --------------------------------------------------------------------------------

  static void testDelegates() {
    long m = call("multicast_create");
    Delegate one = new Delegate(new Named("one")), two = new Delegate(new Named("two"));
    check("is_valid", ask("multicast_is_valid", m), true);
    check("add one", add(m, one, null, null), OK);
    check("add two", add(m, two, null, null), OK);
    System.gc(); // may move the listeners
    check("invoke 7", invoke(m, 7, "hel\0lo"), 2L);
    check("taken", taken(), List.of("one 7 hel\0lo", "two 7 hel\0lo"));
    check("remove", remove(m, one), OK);
    check("remove again", remove(m, one), NOT_FOUND);
    check("invoke 8", invoke(m, 8, "x"), 1L);
    check("taken", taken(), List.of("two 8 x"));

    long lifetime = call("multicast_lifetime_create");
    ByteBuffer options = struct(SIZE_OF_OPTIONS).putLong(LIFETIME, lifetime);
    check("add weakly", add(m, one, options, null), OK);
    check("invoke 9", invoke(m, 9, ""), 2L);
    check("taken", taken(), List.of("two 9 ", "one 9 "));
    check("lifetime_end", status("multicast_lifetime_end", lifetime), OK);
    check("lifetime_end again", status("multicast_lifetime_end", lifetime), INVALID_HANDLE);
    check("count", call("multicast_count", m), 1L);

    ByteBuffer owning = struct(SIZE_OF_OPTIONS).putInt(PRIORITY, 1);
    ByteBuffer out = struct(8);
    owning.putLong(RELEASE, releaseFunction());
    check("add owned", add(m, new Delegate(new Named("owned")), owning, out), OK);
    check("invoke 10", invoke(m, 10, ""), 2L);
    check("taken", taken(), List.of("owned 10 ", "two 10 "));
    long token = out.getLong(0);
    check("token_remove", status("multicast_token_remove", token), OK);
    check("token_remove again", status("multicast_token_remove", token), INVALID_HANDLE);
    check("token_is_live", ask("multicast_token_is_valid", token), false);
    check("released", taken(), List.of("owned released"));
    check("destroy", status("multicast_destroy", m), OK);
    check("is_valid", ask("multicast_is_valid", m), false);
  }

  static void testQueue() throws InterruptedException {
    long m = call("multicast_create"), queue = call("multicast_queue_create", 0);
    int descriptor = status("multicast_queue_fd", queue);
    ByteBuffer options = struct(SIZE_OF_OPTIONS).putLong(QUEUE, queue);
    check("add", add(m, new Delegate(new Named("one")), options, null), OK);
    check("readable", isReadable(descriptor), false);
    ByteBuffer payload = direct("later");
    check("invoke 3", call("multicast_invoke", m, 3, address(payload), 5), 1L);
    payload.put(0, new byte[5]); // the queue has its own copy
    check("taken", taken(), List.of());
    check("readable", isReadable(descriptor), true);
    ByteBuffer stats = struct(SIZE_OF_STATS);
    check("stats", status("multicast_queue_get_stats", queue, address(stats)), OK);
    check("pending", stats.getLong(PENDING), 1L);
    check("queued", stats.getLong(QUEUED), 1L);
    check("highest", stats.getLong(HIGHEST), 1L);
    check("run", call("multicast_queue_run", queue, 0), 1L);
    check("taken", taken(), List.of("one 3 later"));
    check("readable", isReadable(descriptor), false);
    check("stats", status("multicast_queue_get_stats", queue, address(stats)), OK);
    check("pending", stats.getLong(PENDING), 0L);
    check("delivered", stats.getLong(DELIVERED), 1L);

    // The bridge attaches the queue's own thread to the Java VM.
    Thread[] runner = {null};
    CountDownLatch called = new CountDownLatch(1);
    Delegate note = new Delegate((event, bytes) -> {
      runner[0] = Thread.currentThread();
      called.countDown();
    });
    check("add note", add(m, note, options, null), OK);
    check("queue_start", status("multicast_queue_start", queue), OK);
    check("invoke 4", invoke(m, 4, ""), 2L);
    check("called", called.await(60, TimeUnit.SECONDS), true);
    check("on another thread", runner[0] != Thread.currentThread(), true);
    System.gc();
    check("queue_destroy", status("multicast_queue_destroy", queue), OK);
    check("taken", taken(), List.of("one 4 "));
    check("destroy", status("multicast_destroy", m), OK);
  }

  static void testRemovalWaitsForAnotherThread() throws InterruptedException {
    long m = call("multicast_create");
    CountDownLatch inside = new CountDownLatch(1);
    boolean[] done = {false};
    Delegate slow = new Delegate((event, bytes) -> {
      inside.countDown();
      try {
        Thread.sleep(50);
      } catch (InterruptedException e) {
        return;
      }
      done[0] = true;
    });
    check("add", add(m, slow, null, null), OK);
    Thread thread = new Thread(() -> invoke(m, 0, ""));
    thread.start();
    inside.await();
    check("remove", remove(m, slow), OK);
    check("done", done[0], true);
    thread.join();
    check("destroy", status("multicast_destroy", m), OK);
  }

  public static void main(String[] arguments) throws InterruptedException {
    System.load(arguments[1]);
    if (!open(arguments[0])) throw new UnsatisfiedLinkError(arguments[0]);
    check("version", status("multicast_version") >> 16, 1);
    testDelegates();
    testQueue();
    testRemovalWaitsForAnotherThread();
    check("invoke forged", invoke(0xDEADBEEFDEADBEEFL, 0, ""), (long) INVALID_HANDLE);
    check("name", text(call("multicast_status_name", NOT_FOUND)), "MULTICAST_ERROR_NOT_FOUND");
    System.out.println(failures == 0 ? "java: " + checks + " checks passed"
        : "java: " + failures + " of " + checks + " checks failed");
    System.exit(failures == 0 ? 0 : 1);
  }
}
