-- Uses libmulticast from Lua, with LuaJIT's FFI. The argument is the path of libmulticast.so.
local ffi = require "ffi"

-- LuaJIT cannot be called back from a compiled trace, so code that invokes or runs a queue must be
-- interpreted.
jit.off()

-- ---- Declarations from multicast.h --------------------------------------------------------------

ffi.cdef [[
typedef struct multicast          { uint64_t id; } multicast;
typedef struct multicast_token    { uint64_t id; } multicast_token;
typedef struct multicast_lifetime { uint64_t id; } multicast_lifetime;
typedef struct multicast_queue    { uint64_t id; } multicast_queue;
typedef void (*multicast_function)(void *context, uint32_t event, const void *payload, size_t size);
typedef struct multicast_delegate {
  multicast_function function; void *context;
} multicast_delegate;
typedef struct multicast_add_options {
  uint32_t struct_size; uint32_t flags; int32_t priority; uint32_t reserved; uint64_t events;
  multicast_lifetime lifetime; multicast_queue queue;
  void (*release)(void *context); void *(*lock)(void *context); void (*unlock)(void *strong);
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
int64_t multicast_invoke(multicast target, uint32_t event, const void *payload, size_t size);
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

struct pollfd { int fd; short events, revents; };
int poll(struct pollfd *fds, unsigned long count, int timeout_ms);
]]

local lib = ffi.load(arg[1])
local OK, INVALID_HANDLE, NOT_FOUND, TIMEOUT = 0, -10, -30, -70
local POLLIN = 1

-- ---- Checks and delegates -----------------------------------------------------------------------

local checks, failures = 0, 0

local function source_line(number)
  for line in io.lines(arg[0]) do
    number = number - 1
    if number == 0 then return line:match("^%s*(.*)$") end
  end
end

local function check(actual, expected)
  checks = checks + 1
  if actual == expected then return end
  failures = failures + 1
  local line = debug.getinfo(2, "l").currentline
  print(("%s:%d: %s: %s is not %s"):format(arg[0], line, source_line(line), tostring(actual),
    tostring(expected)))
end

local calls, released = {}, {}

-- FFI keeps a callback until its free() is called, and can create only some hundreds of callbacks.
-- Therefore there is one callback for each function, not for each delegate, and contexts are numbers.
-- An error must not pass through the library.
local listen = ffi.cast("multicast_function", function(context, event, payload, size)
  local ok, text = pcall(ffi.string, payload, size)
  table.insert(calls, ("%d %d %s"):format(tonumber(ffi.cast("intptr_t", context)), event,
    ok and text or "error"))
end)
local release = ffi.cast("void (*)(void *)", function(context)
  table.insert(released, tonumber(ffi.cast("intptr_t", context)))
end)

local function taken()
  local result = table.concat(calls, ", ")
  calls = {}
  return result
end

local function delegate(number)
  return ffi.new("multicast_delegate", listen, ffi.cast("void *", number))
end

local function options(fields)
  fields.struct_size = fields.struct_size or ffi.sizeof("multicast_add_options")
  return ffi.new("multicast_add_options", fields)
end

local function readable(fd)
  local watched = ffi.new("struct pollfd[1]", {{fd, POLLIN, 0}})
  return ffi.C.poll(watched, 1, 0) == 1 and watched[0].revents == POLLIN
end

local first, second = delegate(1), delegate(2)

-- ---- The tests ----------------------------------------------------------------------------------

local function test_delegates()
  local m = lib.multicast_create()
  check(lib.multicast_is_valid(m), true)
  check(lib.multicast_add(m, first, nil, nil), OK)
  check(lib.multicast_add(m, second, nil, nil), OK)
  check(lib.multicast_invoke(m, 7, "hel\0lo", 6), 2)
  check(taken(), "1 7 hel\0lo, 2 7 hel\0lo")

  check(lib.multicast_remove(m, first), OK)
  check(lib.multicast_remove(m, first), NOT_FOUND)
  check(lib.multicast_invoke(m, 8, "x", 1), 1)
  check(taken(), "2 8 x")

  local lifetime = lib.multicast_lifetime_create()
  check(lib.multicast_add(m, first, options {lifetime = lifetime}, nil), OK)
  check(lib.multicast_lifetime_count(lifetime), 1)
  check(lib.multicast_invoke(m, 9, nil, 0), 2)
  check(taken(), "2 9 , 1 9 ")
  check(lib.multicast_lifetime_end(lifetime), OK)
  check(lib.multicast_lifetime_end(lifetime), INVALID_HANDLE)
  check(lib.multicast_count(m), 1)

  local token = ffi.new("multicast_token[1]")
  check(lib.multicast_add(m, first, options {priority = 1, release = release}, token), OK)
  check(lib.multicast_invoke(m, 10, nil, 0), 2)
  check(taken(), "1 10 , 2 10 ")
  check(#released, 0)
  check(lib.multicast_token_remove(token[0]), OK)
  check(lib.multicast_token_remove(token[0]), INVALID_HANDLE)
  check(lib.multicast_token_is_valid(token[0]), false)
  check(table.concat(released, ", "), "1")
  check(lib.multicast_destroy(m), OK)
  check(lib.multicast_is_valid(m), false)
end

local function test_queue()
  local m, queue = lib.multicast_create(), lib.multicast_queue_create(nil)
  local fd = lib.multicast_queue_fd(queue)
  check(lib.multicast_add(m, first, options {queue = queue}, nil), OK)
  check(readable(fd), false)
  check(lib.multicast_queue_wait(queue, 0), TIMEOUT)
  local payload = ffi.new("char[6]", "later")
  check(lib.multicast_invoke(m, 3, payload, 5), 1)
  ffi.copy(payload, "XXXXX") -- the queue has its own copy
  check(taken(), "")
  check(readable(fd), true)
  local stats = ffi.new("multicast_queue_stats")
  stats.struct_size = ffi.sizeof(stats)
  check(lib.multicast_queue_get_stats(queue, stats), OK)
  check(stats.pending, 1)
  check(stats.queued, 1)
  check(stats.highest, 1)
  check(lib.multicast_queue_run(queue, 0), 1)
  check(taken(), "1 3 later")
  check(readable(fd), false)
  check(lib.multicast_queue_get_stats(queue, stats), OK)
  check(stats.pending, 0)
  check(stats.delivered, 1)
  check(lib.multicast_queue_destroy(queue), OK)
  check(lib.multicast_destroy(m), OK)
end

check(bit.rshift(lib.multicast_version(), 16), 1)
test_delegates()
test_queue()
check(lib.multicast_invoke(ffi.new("multicast", 0xDEADBEEFDEADBEEFULL), 0, nil, 0), INVALID_HANDLE)
check(ffi.string(lib.multicast_status_name(NOT_FOUND)), "MULTICAST_ERROR_NOT_FOUND")
print(failures == 0 and ("lua: %d checks passed"):format(checks)
  or ("lua: %d of %d checks failed"):format(failures, checks))
os.exit(failures == 0)
