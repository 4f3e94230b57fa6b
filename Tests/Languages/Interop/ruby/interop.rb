# Uses libmulticast from Ruby, with Fiddle. The argument is the path of libmulticast.so.
require "fiddle/import"

# The declarations from multicast.h. Fiddle cannot pass structs by value, so a handle is declared as a
# 64-bit integer and a delegate as two pointers, which are passed in the same registers.
module C
  extend Fiddle::Importer
  dlload ARGV.fetch(0)
  typealias "handle", "uint64_t"
  typealias "bool", "uint8_t"

  OK, INVALID_HANDLE, NOT_FOUND, TIMEOUT = 0, -10, -30, -70
  Options = struct ["uint32_t struct_size", "uint32_t flags", "int32_t priority",
                    "uint32_t reserved", "uint64_t events", "handle lifetime", "handle queue",
                    "void *release", "void *lock", "void *unlock"]
  Stats = struct ["uint32_t struct_size", "uint32_t flags", "uint64_t pending",
                  "uint64_t queued", "uint64_t delivered", "uint64_t refused",
                  "uint64_t dropped", "uint64_t cancelled", "uint64_t coalesced",
                  "uint64_t highest"]
  Token = struct ["handle id"]

  extern "uint32_t multicast_version()"
  extern "const char *multicast_status_name(int64_t status)"
  extern "handle multicast_create()"
  extern "int multicast_destroy(handle target)"
  extern "bool multicast_is_valid(handle target)"
  extern "int multicast_add(handle target, void *function, void *context, void *options, void *out)"
  extern "int multicast_remove(handle target, void *function, void *context)"
  extern "int64_t multicast_count(handle target)"
  extern "int64_t multicast_invoke(handle target, uint32_t event, void *payload, size_t size)"
  extern "int multicast_token_remove(handle token)"
  extern "bool multicast_token_is_valid(handle token)"
  extern "handle multicast_lifetime_create()"
  extern "int multicast_lifetime_end(handle lifetime)"
  extern "int64_t multicast_lifetime_count(handle lifetime)"
  extern "handle multicast_queue_create(void *options)"
  extern "int multicast_queue_destroy(handle queue)"
  extern "int multicast_queue_fd(handle queue)"
  extern "int64_t multicast_queue_run(handle queue, size_t max)"
  extern "int64_t multicast_queue_wait(handle queue, uint64_t timeout_ns)"
  extern "int multicast_queue_get_stats(handle queue, void *out)"

  def self.new_struct(type, **fields)
    result = type.malloc(Fiddle::RUBY_FREE)
    result.to_ptr[0, type.size] = "\0" * type.size
    result.struct_size = type.size if result.respond_to? :struct_size=
    fields.each { |name, value| result.send("#{name}=", value) }
    result
  end
end
include C # for the constants

# ---- Checks and delegates ------------------------------------------------------------------------

$checks = $failures = 0

def check(actual, expected)
  $checks += 1
  return if actual == expected
  $failures += 1
  where = caller_locations(1, 1).first
  source = File.readlines(where.path)[where.lineno - 1].strip
  puts "#{where.path}:#{where.lineno}: #{source}: #{actual.inspect} is not #{expected.inspect}"
end

# Creates the function of a delegate. Keep a reference to it for as long as it can be called, because
# Ruby does not see the library's reference. An exception must not pass through the library. A queue
# that calls Ruby must not have its own thread, because Ruby would not know this thread.
def function(&block)
  types = [Fiddle::TYPE_VOIDP, -Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T]
  Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_VOID, types) do |context, event, payload, size|
    block.call(context.to_i, event, size > 0 ? payload[0, size] : "")
  rescue StandardError => error
    check(error, nil)
  end
end

$calls = []
$released = []
LISTEN = function { |*call| $calls << call }
RELEASE = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_VOID, [Fiddle::TYPE_VOIDP]) do |context|
  $released << context.to_i
end

def taken = $calls.slice!(0..)

def options(**fields) = C.new_struct(Options, **fields)

def readable?(io) = !IO.select([io], nil, nil, 0).nil?

# ---- The tests -----------------------------------------------------------------------------------

def test_delegates
  m = C.multicast_create
  check(C.multicast_is_valid(m), 1)
  check(C.multicast_add(m, LISTEN, 1, nil, nil), OK)
  check(C.multicast_add(m, LISTEN, 2, nil, nil), OK)
  check(C.multicast_invoke(m, 7, "hel\0lo", 6), 2)
  check(taken, [[1, 7, "hel\0lo"], [2, 7, "hel\0lo"]])

  check(C.multicast_remove(m, LISTEN, 1), OK)
  check(C.multicast_remove(m, LISTEN, 1), NOT_FOUND)
  check(C.multicast_invoke(m, 8, "x", 1), 1)
  check(taken, [[2, 8, "x"]])

  lifetime = C.multicast_lifetime_create
  check(C.multicast_add(m, LISTEN, 1, options(lifetime: lifetime), nil), OK)
  check(C.multicast_lifetime_count(lifetime), 1)
  check(C.multicast_invoke(m, 9, nil, 0), 2)
  check(taken, [[2, 9, ""], [1, 9, ""]])
  check(C.multicast_lifetime_end(lifetime), OK)
  check(C.multicast_lifetime_end(lifetime), INVALID_HANDLE)
  check(C.multicast_count(m), 1)

  token = C.new_struct(Token)
  check(C.multicast_add(m, LISTEN, 1, options(priority: 1, release: RELEASE), token), OK)
  check(C.multicast_invoke(m, 10, nil, 0), 2)
  check(taken, [[1, 10, ""], [2, 10, ""]])
  check($released, [])
  check(C.multicast_token_remove(token.id), OK)
  check(C.multicast_token_remove(token.id), INVALID_HANDLE)
  check(C.multicast_token_is_valid(token.id), 0)
  check($released, [1])
  check(C.multicast_destroy(m), OK)
  check(C.multicast_is_valid(m), 0)
end

def test_queue
  m = C.multicast_create
  queue = C.multicast_queue_create(nil)
  descriptor = IO.for_fd(C.multicast_queue_fd(queue), autoclose: false) # the queue closes it
  check(C.multicast_add(m, LISTEN, 1, options(queue: queue), nil), OK)
  check(readable?(descriptor), false)
  check(C.multicast_queue_wait(queue, 0), TIMEOUT)
  payload = Fiddle::Pointer["later"]
  check(C.multicast_invoke(m, 3, payload, 5), 1)
  payload[0, 5] = "XXXXX" # the queue has its own copy
  check(taken, [])
  check(readable?(descriptor), true)
  stats = C.new_struct(Stats)
  check(C.multicast_queue_get_stats(queue, stats), OK)
  check([stats.pending, stats.queued, stats.delivered, stats.highest], [1, 1, 0, 1])
  check(C.multicast_queue_run(queue, 0), 1)
  check(taken, [[1, 3, "later"]])
  check(readable?(descriptor), false)
  check(C.multicast_queue_get_stats(queue, stats), OK)
  check([stats.pending, stats.queued, stats.delivered], [0, 1, 1])

  # Another thread invokes, and a loop on this thread runs the queue.
  thread = Thread.new { 100.times.sum { |i| C.multicast_invoke(m, i, i.to_s, i.to_s.size) } }
  while $calls.size < 100 && IO.select([descriptor], nil, nil, 60)
    C.multicast_queue_run(queue, 0)
  end
  check(thread.value, 100)
  check(taken, Array.new(100) { |i| [1, i, i.to_s] })
  check(C.multicast_queue_destroy(queue), OK)
  check(C.multicast_destroy(m), OK)
end

# This would hang if Fiddle did not release Ruby's lock during a call and take it for a callback.
def test_removal_waits_for_another_thread
  m = C.multicast_create
  inside = Thread::Queue.new
  done = []
  slow = function do
    inside << true
    sleep 0.05
    done << true
  end
  check(C.multicast_add(m, slow, nil, nil, nil), OK)
  thread = Thread.new { C.multicast_invoke(m, 0, nil, 0) }
  inside.pop
  check(C.multicast_remove(m, slow, nil), OK)
  check(done, [true])
  check(thread.value, 1)
  check(C.multicast_destroy(m), OK)
end

check(C.multicast_version >> 16, 1)
test_delegates
test_queue
test_removal_waits_for_another_thread
check(C.multicast_invoke(0xDEADBEEFDEADBEEF, 0, nil, 0), INVALID_HANDLE)
check(C.multicast_status_name(NOT_FOUND).to_s, "MULTICAST_ERROR_NOT_FOUND")
failed = "#{$failures} of #{$checks} checks failed"
puts "ruby: #{$failures == 0 ? "#{$checks} checks passed" : failed}"
exit $failures == 0
