# Uses libmulticast from Perl, with FFI::Platypus. The argument is the path of libmulticast.so.
use v5.32;
use warnings;
use FFI::Platypus 1.00;
use FFI::Platypus::Buffer qw(buffer_to_scalar scalar_to_buffer);
use IO::Select;
use constant {
  OK => 0, INVALID_HANDLE => -10, NOT_FOUND => -30, TIMEOUT => -70,
};

# ---- Declarations from multicast.h ---------------------------------------------------------------

my $ffi = FFI::Platypus->new(api => 1, lib => $ARGV[0]);

package Delegate {
  use FFI::Platypus::Record;
  record_layout_1(opaque => 'function', opaque => 'context');
}
package Options {
  use FFI::Platypus::Record;
  record_layout_1(
    uint32 => 'struct_size', uint32 => 'flags', sint32 => 'priority', uint32 => 'reserved',
    uint64 => 'events', uint64 => 'lifetime', uint64 => 'queue',
    opaque => 'release', opaque => 'lock', opaque => 'unlock');
}
package Stats {
  use FFI::Platypus::Record;
  record_layout_1(
    uint32 => 'struct_size', uint32 => 'flags',
    map { (uint64 => $_) }
      qw(pending queued delivered refused dropped cancelled coalesced highest));
}

# A struct with one integer is passed in the same register as an integer.
$ffi->type(uint64 => 'handle');
$ffi->type('record(Delegate)' => 'delegate');
$ffi->type('(opaque, uint32, opaque, size_t)->void' => 'function');
$ffi->type('(opaque)->void' => 'release');
$ffi->attach(@$_) for (
  [multicast_version => [] => 'uint32'],
  [multicast_status_name => ['sint64'] => 'string'],
  [multicast_create => [] => 'handle'],
  [multicast_destroy => ['handle'] => 'int'],
  [multicast_is_valid => ['handle'] => 'bool'],
  [multicast_add => ['handle', 'delegate', 'record(Options)*', 'uint64*'] => 'int'],
  [multicast_remove => ['handle', 'delegate'] => 'int'],
  [multicast_count => ['handle'] => 'sint64'],
  [multicast_invoke => ['handle', 'uint32', 'opaque', 'size_t'] => 'sint64'],
  [multicast_token_remove => ['handle'] => 'int'],
  [multicast_token_is_valid => ['handle'] => 'bool'],
  [multicast_lifetime_create => [] => 'handle'],
  [multicast_lifetime_end => ['handle'] => 'int'],
  [multicast_lifetime_count => ['handle'] => 'sint64'],
  [multicast_queue_create => ['opaque'] => 'handle'],
  [multicast_queue_destroy => ['handle'] => 'int'],
  [multicast_queue_fd => ['handle'] => 'int'],
  [multicast_queue_run => ['handle', 'size_t'] => 'sint64'],
  [multicast_queue_wait => ['handle', 'uint64'] => 'sint64'],
  [multicast_queue_get_stats => ['handle', 'record(Stats)*'] => 'int'],
);

# ---- Checks and delegates ------------------------------------------------------------------------

my ($checks, $failures) = (0, 0);

sub check {
  my ($actual, $expected) = @_;
  $checks++;
  return if $actual eq $expected;
  $failures++;
  my (undef, $file, $line) = caller;
  open my $source, '<', $file or die "$file: $!";
  my $text = (<$source>)[$line - 1] =~ s/^\s+|\s+$//gr;
  say "$file:$line: $text: $actual is not $expected";
}

my (@calls, @released);

# The program stores closures in variables, because the library's pointers to them do not count as
# references. If a closure dies, the exception ends in the closure with a warning. Closures belong to
# this thread, so Perl code must not be called on other threads, such as a queue's own thread.
my $listen = $ffi->closure(sub {
  my ($context, $event, $payload, $size) = @_;
  push @calls, join ' ', $context, $event, $size ? buffer_to_scalar($payload, $size) : '-';
});
my $release = $ffi->closure(sub { push @released, $_[0] });

sub taken { return join ', ', splice @calls }

sub delegate {
  my ($number) = @_;
  return Delegate->new(function => $ffi->cast(function => 'opaque', $listen), context => $number);
}

sub options { return Options->new(struct_size => $ffi->sizeof('record(Options)'), @_) }

sub invoke {
  my ($m, $event, $text) = @_;
  return multicast_invoke($m, $event, defined $text ? scalar_to_buffer($text) : (undef, 0));
}

sub readable {
  my ($fd) = @_;
  my @ready = IO::Select->new($fd)->can_read(0);
  return scalar @ready;
}

my ($first, $second) = map { delegate($_) } 1, 2;

# ---- The tests -----------------------------------------------------------------------------------

sub test_delegates {
  my $m = multicast_create();
  check(multicast_is_valid($m), 1);
  check(multicast_add($m, $first, undef, undef), OK);
  check(multicast_add($m, $second, undef, undef), OK);
  check(invoke($m, 7, "hel\0lo"), 2);
  check(taken(), "1 7 hel\0lo, 2 7 hel\0lo");

  check(multicast_remove($m, $first), OK);
  check(multicast_remove($m, $first), NOT_FOUND);
  check(invoke($m, 8, 'x'), 1);
  check(taken(), '2 8 x');

  my $lifetime = multicast_lifetime_create();
  check(multicast_add($m, $first, options(lifetime => $lifetime), undef), OK);
  check(multicast_lifetime_count($lifetime), 1);
  check(invoke($m, 9), 2);
  check(taken(), '2 9 -, 1 9 -');
  check(multicast_lifetime_end($lifetime), OK);
  check(multicast_lifetime_end($lifetime), INVALID_HANDLE);
  check(multicast_count($m), 1);

  my $release_pointer = $ffi->cast(release => 'opaque', $release);
  my $options = options(priority => 1, release => $release_pointer);
  check(multicast_add($m, $first, $options, \my $token), OK);
  check(invoke($m, 10), 2);
  check(taken(), '1 10 -, 2 10 -');
  check("@released", '');
  check(multicast_token_remove($token), OK);
  check(multicast_token_remove($token), INVALID_HANDLE);
  check(!!multicast_token_is_valid($token), !!0);
  check("@released", '1');
  check(multicast_destroy($m), OK);
  check(!!multicast_is_valid($m), !!0);
}

sub test_queue {
  my ($m, $queue) = (multicast_create(), multicast_queue_create(undef));
  my $fd = multicast_queue_fd($queue);
  check(multicast_add($m, $first, options(queue => $queue), undef), OK);
  check(readable($fd), 0);
  check(multicast_queue_wait($queue, 0), TIMEOUT);
  my $payload = 'later';
  check(multicast_invoke($m, 3, scalar_to_buffer($payload)), 1);
  substr($payload, 0) = 'XXXXX'; # the queue has its own copy
  check(taken(), '');
  check(readable($fd), 1);
  my $stats = Stats->new(struct_size => $ffi->sizeof('record(Stats)'));
  check(multicast_queue_get_stats($queue, $stats), OK);
  check(join(' ', $stats->pending, $stats->queued, $stats->delivered, $stats->highest), '1 1 0 1');
  check(multicast_queue_run($queue, 0), 1);
  check(taken(), '1 3 later');
  check(readable($fd), 0);
  check(multicast_queue_get_stats($queue, $stats), OK);
  check(join(' ', $stats->pending, $stats->queued, $stats->delivered), '0 1 1');
  check(multicast_queue_destroy($queue), OK);
  check(multicast_destroy($m), OK);
}

check(multicast_version() >> 16, 1);
test_delegates();
test_queue();
check(invoke(0xDEADBEEF << 32 | 0xDEADBEEF, 0), INVALID_HANDLE);
check(multicast_status_name(NOT_FOUND), 'MULTICAST_ERROR_NOT_FOUND');
say $failures ? "perl: $failures of $checks checks failed" : "perl: $checks checks passed";
exit($failures ? 1 : 0);
