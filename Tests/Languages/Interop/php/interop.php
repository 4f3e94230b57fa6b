<?php
// Uses libmulticast from PHP, with its FFI. The argument is the path of libmulticast.so.
declare(strict_types=1);

// ---- Declarations from multicast.h --------------------------------------------------------------

const OK = 0, INVALID_HANDLE = -10, NOT_FOUND = -30, TIMEOUT = -70;

// Contexts are numbers. multicast_invoke() is declared with a char *, so that it accepts a string.
// Delegates receive their payload as a void *, because PHP would convert a char * to a string that
// ends at the first NUL.
$lib = FFI::cdef(<<<'C'
    typedef struct multicast          { uint64_t id; } multicast;
    typedef struct multicast_token    { uint64_t id; } multicast_token;
    typedef struct multicast_lifetime { uint64_t id; } multicast_lifetime;
    typedef struct multicast_queue    { uint64_t id; } multicast_queue;
    typedef void (*multicast_function)(intptr_t context, uint32_t event, const void *payload,
                                       size_t size);
    typedef struct multicast_delegate {
      multicast_function function; intptr_t context;
    } multicast_delegate;
    typedef struct multicast_add_options {
      uint32_t struct_size; uint32_t flags; int32_t priority; uint32_t reserved; uint64_t events;
      multicast_lifetime lifetime; multicast_queue queue;
      void (*release)(intptr_t context); void *lock; void *unlock;
    } multicast_add_options;
    typedef struct multicast_queue_stats {
      uint32_t struct_size; uint32_t flags;
      uint64_t pending, queued, delivered, refused, dropped, cancelled, coalesced, highest;
    } multicast_queue_stats;

    uint32_t multicast_version(void);
    const char *multicast_status_name(int64_t status);
    multicast multicast_create(void);
    int multicast_destroy(multicast target);
    bool multicast_is_valid(multicast target);
    int multicast_add(multicast target, multicast_delegate delegate,
                      const multicast_add_options *options, multicast_token *out);
    int multicast_remove(multicast target, multicast_delegate delegate);
    int64_t multicast_count(multicast target);
    int64_t multicast_invoke(multicast target, uint32_t event, const char *payload, size_t size);
    int multicast_token_remove(multicast_token token);
    bool multicast_token_is_valid(multicast_token token);
    multicast_lifetime multicast_lifetime_create(void);
    int multicast_lifetime_end(multicast_lifetime lifetime);
    int64_t multicast_lifetime_count(multicast_lifetime lifetime);
    multicast_queue multicast_queue_create(const void *options);
    int multicast_queue_destroy(multicast_queue queue);
    int multicast_queue_fd(multicast_queue queue);
    int64_t multicast_queue_run(multicast_queue queue, size_t max);
    int64_t multicast_queue_wait(multicast_queue queue, uint64_t timeout_ns);
    int multicast_queue_get_stats(multicast_queue queue, multicast_queue_stats *out);
    C, $argv[1]);

// ---- Checks and delegates -----------------------------------------------------------------------

$checks = $failures = 0;

function check(mixed $actual, mixed $expected): void
{
    global $checks, $failures;
    $checks++;
    if ($actual === $expected) {
        return;
    }
    $failures++;
    ['file' => $file, 'line' => $line] = debug_backtrace()[0];
    $source = trim(file($file)[$line - 1]);
    echo "$file:$line: $source: ", json_encode($actual), ' is not ', json_encode($expected), "\n";
}

$calls = [];

// PHP creates a C function each time a closure is assigned, and frees it only at the end of the
// request. Therefore all delegates share one function and have different contexts. An exception in
// this function ends the program.
$listener = $lib->new('multicast_delegate');
$listener->function = function (int $context, int $event, ?FFI\CData $payload, int $size) {
    global $calls;
    $calls[] = [$context, $event, $size > 0 ? FFI::string($payload, $size) : ''];
};

function delegate(int $context): FFI\CData
{
    global $listener;
    $delegate = clone $listener;
    $delegate->context = $context;
    return $delegate;
}

function options(?int $struct_size = null): FFI\CData
{
    global $lib;
    $options = $lib->new('multicast_add_options');
    $options->struct_size = $struct_size ?? FFI::sizeof($options);
    return $options;
}

function taken(): array
{
    global $calls;
    [$result, $calls] = [$calls, []];
    return $result;
}

/** Returns a stream with a duplicate of the descriptor. PHP closes the duplicate. */
function watch(int $descriptor): mixed
{
    return fopen("php://fd/$descriptor", 'r');
}

function isReadable(mixed $stream): bool
{
    $read = [$stream];
    $none = [];
    return stream_select($read, $none, $none, 0) === 1;
}

[$first, $second] = [delegate(1), delegate(2)];

// ---- The tests ----------------------------------------------------------------------------------

function test_delegates(FFI $lib, FFI\CData $first, FFI\CData $second): void
{
    $m = $lib->multicast_create();
    check($lib->multicast_is_valid($m), true);
    check($lib->multicast_add($m, $first, null, null), OK);
    check($lib->multicast_add($m, $second, null, null), OK);
    check($lib->multicast_invoke($m, 7, "hel\0lo", 6), 2);
    check(taken(), [[1, 7, "hel\0lo"], [2, 7, "hel\0lo"]]);
    check($lib->multicast_remove($m, $first), OK);
    check($lib->multicast_remove($m, $first), NOT_FOUND);
    check($lib->multicast_invoke($m, 8, 'x', 1), 1);
    check(taken(), [[2, 8, 'x']]);

    $options = options();
    $options->lifetime = $lib->multicast_lifetime_create();
    check($lib->multicast_add($m, $first, FFI::addr($options), null), OK);
    check($lib->multicast_lifetime_count($options->lifetime), 1);
    check($lib->multicast_invoke($m, 9, null, 0), 2);
    check(taken(), [[2, 9, ''], [1, 9, '']]);
    check($lib->multicast_lifetime_end($options->lifetime), OK);
    check($lib->multicast_lifetime_end($options->lifetime), INVALID_HANDLE);
    check($lib->multicast_count($m), 1);

    $released = [];
    $options = options();
    $options->priority = 1;
    $options->release = function (int $context) use (&$released) {
        $released[] = $context;
    };
    $token = $lib->new('multicast_token');
    check($lib->multicast_add($m, $first, FFI::addr($options), FFI::addr($token)), OK);
    check($lib->multicast_invoke($m, 10, null, 0), 2);
    check(taken(), [[1, 10, ''], [2, 10, '']]);
    check($released, []);
    check($lib->multicast_token_remove($token), OK);
    check($lib->multicast_token_remove($token), INVALID_HANDLE);
    check($lib->multicast_token_is_valid($token), false);
    check($released, [1]);
    check($lib->multicast_destroy($m), OK);
    check($lib->multicast_is_valid($m), false);
}

function test_queue(FFI $lib, FFI\CData $first): void
{
    $m = $lib->multicast_create();
    $options = options();
    $options->queue = $queue = $lib->multicast_queue_create(null);
    $stream = watch($lib->multicast_queue_fd($queue));
    check($lib->multicast_add($m, $first, FFI::addr($options), null), OK);
    check(isReadable($stream), false);
    check($lib->multicast_queue_wait($queue, 0), TIMEOUT);
    $payload = $lib->new('char[5]');
    FFI::memcpy($payload, 'later', 5);
    check($lib->multicast_invoke($m, 3, $payload, 5), 1);
    FFI::memset($payload, 0, 5); // the queue has its own copy
    check(taken(), []);
    check(isReadable($stream), true);
    $stats = $lib->new('multicast_queue_stats');
    $stats->struct_size = FFI::sizeof($stats);
    check($lib->multicast_queue_get_stats($queue, FFI::addr($stats)), OK);
    check([$stats->pending, $stats->queued, $stats->delivered, $stats->highest], [1, 1, 0, 1]);
    check($lib->multicast_queue_run($queue, 0), 1);
    check(taken(), [[1, 3, 'later']]);
    check(isReadable($stream), false);
    check($lib->multicast_queue_get_stats($queue, FFI::addr($stats)), OK);
    check([$stats->pending, $stats->queued, $stats->delivered], [0, 1, 1]);
    fclose($stream);
    check($lib->multicast_queue_destroy($queue), OK);
    check($lib->multicast_destroy($m), OK);
}

check($lib->multicast_version() >> 16, 1);
test_delegates($lib, $first, $second);
test_queue($lib, $first);
$forged = $lib->new('multicast');
$forged->id = -0x2152411021524111; // 0xDEADBEEFDEADBEEF
check($lib->multicast_invoke($forged, 0, null, 0), INVALID_HANDLE);
check($lib->multicast_status_name(NOT_FOUND), 'MULTICAST_ERROR_NOT_FOUND');
echo $failures === 0 ? "php: $checks checks passed\n" : "php: $failures of $checks checks failed\n";
exit($failures === 0 ? 0 : 1);
