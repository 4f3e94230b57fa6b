"""Small programs: parts of the protocol, with the acquires, releases and fences of the sources.

Each is a function of a mutation, "" for none, and of whether both halves of the fence are full
fences. It returns the threads, the memory at first, and what must never be. MUTATIONS says which
mutations are noticed.
"""

from machine import B, C, F, LOCK, R, UNLOCK, W


def removal(mutation, symmetric):
    """Removal.swift, InvocationList+Invoke.swift: a hazard against a mark."""
    light = [F()] if symmetric and mutation != "light_fence" else []
    heavy = [] if mutation == "heavy_fence" else [F() if symmetric else B()]
    publish = "" if mutation == "hazard_set_relaxed" else "release"
    mark = "" if mutation == "mark_set_relaxed" else "release"
    invoker = [W("hazard", 1, publish), *light, R("dead", "mark")]
    remover = [W("dead", 1, mark), *heavy, R("hazard", "hazard", "acquire")]
    return [invoker, remover], {"hazard": 0, "dead": 0}, \
        lambda r: r["mark"] == 0 and r["hazard"] == 0  # called, and not waited for


def second_removal(mutation, symmetric):
    """Removal.waitForPriorRemovals: another thread has marked it and not fenced."""
    light = [F()] if symmetric else []
    fence = [] if mutation == "prior_fence" else [F() if symmetric else B()]
    invoker = [W("hazard", 1, "release"), *light, R("dead", "mark")]
    first = [W("dead", 1), W("lock", 1, "release")]
    second = [R("lock", "lock", "acquire"), *fence, R("hazard", "hazard", "acquire")]
    return [invoker, first, second], {"hazard": 0, "dead": 0, "lock": 0}, \
        lambda r: r["lock"] == 1 and r["mark"] == 0 and r["hazard"] == 0


def call_ends(mutation, symmetric):
    """Frame.clearHazard: what the delegate did happened before the release function."""
    clear = "" if mutation == "hazard_cleared_relaxed" else "release"
    look = "" if mutation == "hazard_read_relaxed" else "acquire"
    invoker = [W("context", 1), W("hazard", 0, clear)]
    remover = [R("hazard", "hazard", look), R("context", "context", when=("hazard", 0))]
    return [invoker, remover], {"hazard": 1, "context": 0}, \
        lambda r: r["hazard"] == 0 and r["context"] == 0


def withdrawal(mutation, symmetric):
    """Frame.withdraw: a writer that does not see the frame any more frees what it led to."""
    order = "" if mutation == "frame_withdrawn_relaxed" else "release"
    look = "" if mutation == "target_read_relaxed" else "acquire"
    invoker = [R("entry", "entry"), W("target", 0, order)]
    writer = [R("target", "target", look), W("entry", 9, when=("target", 0))]
    return [invoker, writer], {"target": 1, "entry": 1}, lambda r: r["entry"] == 9


def frame(mutation, symmetric):
    """Frame.publish: a writer that sees the target sees the epoch and no older list."""
    order = "" if mutation == "target_published_relaxed" else "release"
    look = "" if mutation == "target_read_relaxed" else "acquire"
    fields = [W("epoch", 1), W("list", 0)]
    target = [W("target", 1, order)]
    body = target + fields if mutation == "fields_after_target" else fields + target
    writer = [R("target", "target", look), R("epoch", "epoch"), R("list", "list")]
    return [body, writer], {"epoch": 0, "list": 7, "target": 0}, \
        lambda r: r["target"] == 1 and (r["epoch"] != 1 or r["list"] == 7)


def lists(mutation, symmetric):
    """Multicast+Lists.swift: a list is replaced and freed; an invocation reads the list."""
    light = [F()] if symmetric else []
    fence = [F() if symmetric else B()]
    invoker = [W("target", 1, "release"), *light, R("list", "list", "acquire")]
    replace = [R("lock", "free", "acquire"), W("list", 2, "release")]
    if mutation == "reclaimed_without_fence":
        fence = []
    writer = replace + [W("lock", 0, "release")] + fence + [R("target", "target", "acquire")]
    return [invoker, writer], {"target": 0, "list": 1, "lock": 0}, \
        lambda r: r["list"] == 1 and r["target"] == 0  # freed while it is read


def last_reader(mutation, symmetric):
    """The retired epoch is stored before the fence: the writer sees the frame gone, or the reader
    sees the epoch, and frees the list."""
    light = [F()] if symmetric else []
    fence = [F() if symmetric else B()]
    retire = [W("newest", 1)]
    order = fence + retire if mutation == "retired_epoch_set_after_fence" else retire + fence
    reader = [W("target", 0, "release"), *light, R("newest", "newest")]
    writer = order + [R("target", "target", "acquire")]
    return [reader, writer], {"target": 1, "newest": 0}, \
        lambda r: r["newest"] == 0 and r["target"] == 1  # it is never freed


def epoch(mutation, symmetric):
    """Epoch.swift: an invocation that has read the new epoch reads the new list."""
    advance = "" if mutation == "epoch_advanced_relaxed" else "release"
    look = "" if mutation == "epoch_read_relaxed" else "acquire"
    change = [W("list", 2, "release"), W("epoch", 1, advance)]
    if mutation == "epoch_advanced_before_list":
        change.reverse()
    invoker = [R("epoch", "epoch", look), R("list", "list", "acquire")]
    return [invoker, change], {"epoch": 0, "list": 1}, \
        lambda r: r["epoch"] == 1 and r["list"] == 1


def next_occupant(mutation, symmetric):
    """Multicast+Destroy.swift, +Create.swift: an invocation by the old handle. 1: the old occupant,
    2: the next one."""
    end = [W("handle", 0), W("list", 0, "release")]
    if mutation in ("handle_cleared_after_list", "no_order_of_handle_and_list"):
        end = [W("list", 0, "release"), W("handle", 0)]
    create = [W("handle", 2, "" if mutation == "handle_set_relaxed" else "release"),
              W("list", 2, "" if mutation in ("list_set_relaxed", "no_order_of_handle_and_list")
                else "release")]
    look = "" if mutation == "list_read_relaxed" else "acquire"
    reads = [R("list", "list", look), R("handle", "handle")]
    if mutation == "handle_read_before_list":
        reads = [R("handle", "handle", "acquire"), R("list", "list", "acquire")]
    return [reads, end + create], {"handle": 1, "list": 1}, \
        lambda r: r["list"] == 2 and r["handle"] == 1  # calls delegates of the next one


def other_list(mutation, symmetric):
    """Frame.publish, Frame.mayRead: the frame has the list of an invocation before, 7, until it is
    cleared. A writer that sees another list frees the one that it has replaced."""
    light = [F()] if symmetric else []
    target, clear = W("target", 1, "release"), W("read", 0)
    begin = [target, clear] if mutation == "list_cleared_after_frame" else [clear, target]
    if mutation == "list_not_cleared":
        begin = [target]
    invoker = [*begin, *light, R("list", "list", "acquire")]
    writer = [W("list", 2, "release"), F() if symmetric else B(),
              R("target", "target", "acquire"), R("read", "read")]
    return [invoker, writer], {"target": 0, "read": 7, "list": 1}, \
        lambda r: r["list"] == 1 and r["target"] == 1 and r["read"] == 7


def fenced_epoch(mutation, symmetric):
    """Epoch.fence, Epoch.isFenced: a list is freed without a fence, since another thread has
    made one after it was retired."""
    light = [F()] if symmetric else []
    fence, read = F() if symmetric else B(), R("epoch", "fenced", "acquire")
    both = [fence, read] if mutation == "epoch_read_after_fence" else [read, fence]
    invoker = [W("target", 1, "release"), *light, R("list", "list", "acquire")]
    writer = [W("list", 2, "release"), W("epoch", 1, "release")]
    fencing = both + [W("made", 1, "release", when=("fenced", 1))]
    reclaiming = [R("made", "made", "acquire"), R("target", "target", "acquire")]
    return [invoker, writer, fencing, reclaiming], \
        {"target": 0, "list": 1, "epoch": 0, "made": 0}, \
        lambda r: r["made"] == 1 and r["list"] == 1 and r["target"] == 0


def entries(mutation, symmetric):
    """InvocationList: an entry is complete before the count includes it."""
    publish = "" if mutation == "count_published_relaxed" else "release"
    look = "" if mutation == "count_read_relaxed" else "acquire"
    writer = [W("entry", 1), W("count", 1, publish)]
    invoker = [R("count", "count", look), R("entry", "entry", when=("count", 1))]
    return [invoker, writer], {"entry": 0, "count": 0}, \
        lambda r: r["count"] == 1 and r["entry"] == 0


# ---- One thread writes something and publishes it ------------------------------------------------

def message(mutation, depends, change=False):
    """A word is stored after what it stands for. A reader that finds it finds that.

    `depends`: the reader finds it through the word, which is or leads to its address."""
    publish = "" if mutation == "published_relaxed" else "release"
    look = "" if mutation == "read_relaxed" else "acquire"
    word = C("word", lambda old: 1, None, publish) if change else W("word", 1, publish)
    found = R("contents", "found", after=("word",)) if depends else \
        R("contents", "found", when=("word", 1))
    return [[W("contents", 1), word], [R("word", "word", look), found]], \
        {"word": 0, "contents": 0}, lambda r: r["word"] == 1 and r["found"] == 0


def slab(mutation, symmetric):
    """SlabDirectory: a slab of zeros, and its address."""
    return message(mutation, depends=True)


def block(mutation, symmetric):
    """ThreadRegistry, ThreadBlock: a block of records, and its address."""
    return message(mutation, depends=True)


def contents(mutation, symmetric):
    """Multicast+Lists.swift: a list, and its address."""
    return message(mutation, depends=True)


def table(mutation, symmetric):
    """Broadcaster, NameTable, Name: a table, and the handle of a name's multicast that replaces
    another one: each leads to the address of the next."""
    return message(mutation, depends=True)


def place(mutation, symmetric):
    """NameTable.put, find: the handle of a name's multicast, and the word beside it, which says
    that the place has a name."""
    return message(mutation, depends=False)


def default(mutation, symmetric):
    """Broadcaster+Create.swift: the broadcaster of the process, and its handle, which leads to
    it."""
    return message(mutation, depends=True)


def policies(mutation, symmetric):
    """Policies+Create.swift: policies, and the index of their slot in that of the multicast."""
    return message(mutation, depends=True)


def interest(mutation, symmetric):
    """VacantSlots.take, Multicast+Interest.swift: the next vacant slot of a thread, and the link of
    the slot that it has taken. The reader is a fork, which copies the memory: that is ordered."""
    return message(mutation, depends=False)


def occupant(mutation, symmetric):
    """SlotPool+Create.swift, Registration.id: a slot is filled before it has its handle. A thread
    that has the handle compares it, and reads the slot."""
    return message(mutation, depends=False)


def record(mutation, symmetric):
    """ThreadBlock.add: a record, and the bit that says that it exists, or that it is owned. And
    giveBack, hasOwners: what the calls of a thread did, and how many threads the block has."""
    return message(mutation, depends=False, change=True)


def woken(mutation, symmetric):
    """Sleeper.isWoken: what the thread that wakes another one has changed, and then the word. The
    sleeper reads it without the lock."""
    return message(mutation, depends=False)


# ---- The last one frees it -----------------------------------------------------------------------

def next_owner(mutation, symmetric):
    """ThreadBlock.giveBack, takeIdle: a thread ends, and another one owns its record. It finds what
    the first has written; what it writes itself comes later."""
    give = "" if mutation == "given_back_relaxed" else "release"
    take = "" if mutation == "taken_relaxed" else "acquire"
    first = [W("frame", 1), C("owned", lambda old: 0, None, give)]
    second = [C("owned", lambda old: 1, "owned", take), R("frame", "frame", when=("owned", 0))]
    return [first, second], {"owned": 1, "frame": 0}, \
        lambda r: r["owned"] == 0 and r["frame"] == 0


def references(mutation, symmetric):
    """Payload.countDown: two threads have done with a payload; the last of them frees it."""
    order = {"counted_without_acquire": "release", "counted_without_release": "acquire"}
    order = order.get(mutation, "acquire release")
    def thread(own, other):
        return [W(own, 1), C("count", lambda old: old - 1, own + "count", order),
                R(other, own + "found", when=(own + "count", 1))]
    return [thread("a", "b"), thread("b", "a")], {"a": 0, "b": 0, "count": 2}, \
        lambda r: any(r[t + "count"] == 1 and r[t + "found"] == 0 for t in "ab")


def calls_over(mutation, symmetric):
    """Payload.counts, Calls.areOver: a thread waits until the calls with a payload are over. It
    finds what they did."""
    look = "" if mutation == "count_read_relaxed" else "acquire"
    end = "acquire" if mutation == "counted_without_release" else "acquire release"
    call = [W("result", 1), C("count", lambda old: old - 1, None, end)]
    waiter = [R("count", "count", look), R("result", "result", when=("count", 1))]
    return [call, waiter], {"result": 0, "count": 2}, \
        lambda r: r["count"] == 1 and r["result"] == 0


def last_member(mutation, symmetric):
    """Lifetime.removeUnfinished, isFinished: the thread that ends a lifetime finds what the release
    functions of its members did."""
    look = "" if mutation == "unfinished_read_relaxed" else "acquire"
    end = "acquire" if mutation == "finished_without_release" else "acquire release"
    release = [W("released", 1), C("unfinished", lambda old: old - 1, None, end)]
    ender = [R("unfinished", "left", look), R("released", "released", when=("left", 1))]
    return [release, ender], {"released": 0, "unfinished": 2}, \
        lambda r: r["left"] == 1 and r["released"] == 0


def end_of_lifetime(mutation, symmetric):
    """Lifetime.beginToFinish, removeUnfinished: the last member finds that the lifetime has ended, and
    wakes the thread that ends it."""
    begin = "" if mutation == "begun_relaxed" else "release"
    end = "release" if mutation == "finished_without_acquire" else "acquire release"
    ender = [W("retired", 1), C("unfinished", lambda old: old + 1, None, begin)]
    member = [C("unfinished", lambda old: old - 1, "before", end),
              R("retired", "retired", when=("before", 2))]
    return [ender, member], {"retired": 0, "unfinished": 1}, \
        lambda r: r["before"] == 2 and r["retired"] == 0


# ---- Locks ---------------------------------------------------------------------------------------

def lock(mutation, symmetric):
    """Lock: two threads change two words under the lock; none sees them differ."""
    take = "" if mutation == "taken_relaxed" else "acquire"
    leave = "" if mutation == "released_relaxed" else "release"
    writer = [LOCK(order=take), W("a", 1), W("b", 1), UNLOCK(order=leave)]
    reader = [LOCK(order=take), R("a", "a"), R("b", "b"), UNLOCK(order=leave)]
    return [writer, reader], {"lock": 0, "a": 0, "b": 0}, lambda r: r["a"] != r["b"]


def head(mutation, symmetric):
    """RingHead: the thread that runs a queue protects a call and takes it out, without the lock. A
    thread that closes the head and finds that the call is gone finds it protected."""
    orders = {"taken_without_release": ("acquire", "acquire release"),
              "closed_without_acquire": ("acquire release", "release")}
    take, close = orders.get(mutation, ("acquire release", "acquire release"))
    run = [W("hazard", 1), C("head", lambda old: 2 if old == 1 else old, "taken", take)]
    close = [C("head", lambda old: old + 10, "head", close), R("hazard", "hazard")]
    return [run, close], {"head": 1, "hazard": 0}, \
        lambda r: r["head"] == 2 and r["hazard"] == 0


def position(mutation, symmetric):
    """RingHead.position, close: the same, by a read of the head, also when it is closed already."""
    look = "" if mutation == "position_read_relaxed" else "acquire"
    take = "acquire" if mutation == "taken_without_release" else "acquire release"
    run = [W("hazard", 1), C("head", lambda old: old + 1, "taken", take)]
    other = [R("head", "head", look), R("hazard", "hazard")]
    return [run, other], {"head": 1, "hazard": 0}, lambda r: r["head"] == 2 and r["hazard"] == 0


def head_under_lock(mutation, symmetric):
    """RingHead.open, move: the head is set under the lock of the queue, and read there."""
    order = "" if mutation == "head_set_relaxed" else "release"
    setter = [LOCK(), W("calls", 1), W("head", 2, order), UNLOCK()]
    other = [LOCK(), R("head", "head", "acquire"), R("calls", "calls"), UNLOCK()]
    return [setter, other], {"lock": 0, "head": 1, "calls": 0}, \
        lambda r: r["head"] == 2 and r["calls"] == 0


def started(mutation, symmetric):
    """Queue.isInUse: a thread that finds a delegate with a queue finds that there are queues."""
    set_, look = ("", "") if mutation == "started_relaxed" else ("release", "acquire")
    creator = [W("started", 1, set_), W("handle", 1, "release")]
    remover = [R("handle", "handle", "acquire"), R("started", "started", look)]
    return [creator, remover], {"started": 0, "handle": 0}, \
        lambda r: r["handle"] == 1 and r["started"] == 0


def failed(mutation, symmetric):
    """Epoch.isBroken: a thread that is about to sleep finds that a fence has failed, or is woken
    because of it."""
    set_, look = ("", "") if mutation == "failed_relaxed" else ("release", "acquire")
    failing = [W("failed", 1, set_), LOCK(), R("sleeps", "woken"), UNLOCK()]
    sleeper = [LOCK(), R("failed", "failed", look), W("sleeps", 1, when=("failed", 0)), UNLOCK()]
    return [failing, sleeper], {"lock": 0, "failed": 0, "sleeps": 0}, \
        lambda r: r["failed"] == 0 and r["woken"] == 0


# ---- Invokers, slots that are used again ---------------------------------------------------------

def invokers(mutation, symmetric):
    """Multicast+Invoke.swift, isBiased: a writer that finds a single invoker makes no fence.
    Another thread lets several in. A third one, which finds that, finds the writer's change."""
    publish = "" if mutation == "several_published_relaxed" else "release"
    look = "" if mutation == "invokers_read_relaxed" else "acquire"
    writer = [LOCK(), R("invokers", "single"), W("dead", 1, when=("single", 0)), UNLOCK()]
    registering = [LOCK(), W("invokers", 1, publish), UNLOCK()]
    invoker = [R("invokers", "several", look), R("dead", "dead", when=("several", 1))]
    return [writer, registering, invoker], {"lock": 0, "invokers": 0, "dead": 0}, \
        lambda r: r["single"] == 0 and r["several"] == 1 and r["dead"] == 0


def first_invoker(mutation, symmetric):
    """Multicast+Invoke.swift, becomesFirst: a first invoker takes no lock. A writer that finds no
    invoker makes no fence; the invoker finds the lock taken, or the writer's change."""
    # To take a lock, and to change a word, is a read and a write: what follows may come between.
    writer_fence = [] if mutation == "no_fence_after_lock" else [F()]
    invoker_fence = [] if mutation == "no_fence_after_change" else [F()]
    leave = "" if mutation == "unlocked_relaxed" else "release"
    look = "" if mutation == "lock_read_relaxed" else "acquire"
    writer = [R("lock", "was", "acquire"), W("lock", 1), *writer_fence, R("invokers", "found"),
              W("dead", 1, when=("found", 0)), W("lock", 0, leave)]
    invoker = [R("invokers", "none", "acquire"), W("invokers", 1, "release"), *invoker_fence,
               R("lock", "lock", look), R("dead", "dead", when=("lock", 0))]
    return [writer, invoker], {"lock": 0, "invokers": 0, "dead": 0}, \
        lambda r: r["found"] == 0 and r["lock"] == 0 and r["dead"] == 0


def owner(mutation, symmetric):
    """Registration.lockStripe: a vacant slot gets another owner and then an occupant. A thread that
    reads the new handle twice, and the owner between, reads the new owner."""
    publish = "" if mutation == "handle_set_relaxed" else "release"
    look = "" if mutation == "handle_read_relaxed" else "acquire"
    order = "" if mutation == "owner_read_relaxed" else "acquire"
    change = [W("owner", 2), W("handle", 2, publish)]
    reader = [R("handle", "before", look), R("owner", "owner", order), R("handle", "after")]
    return [change, reader], {"owner": 1, "handle": 1}, \
        lambda r: r["before"] == 2 and r["after"] == 2 and r["owner"] == 1


def begin_fencing(mutation, symmetric):
    """Bias.swift: a multicast becomes fenced. A remover makes a full fence only, unless it finds a
    frame of an invocation that may be biased."""
    light = [F()] if symmetric else []
    heavy = [] if mutation == "fencing_without_barrier" else [F() if symmetric else B()]
    publish, ask = [W("frame", 1), *light], [R("fenced", "fenced", "acquire")]
    begin = ask + publish if mutation == "asked_before_frame" else publish + ask
    invoker = [*begin, R("dead", "mark")]  # fenced, it makes a full fence: see `removal`
    change = [W("fenced", 1, "release"), *heavy, W("since", 1, "release")]
    remover = [R("since", "since", "acquire"), W("dead", 1), F(), R("frame", "frame", "acquire")]
    return [invoker, change, remover], {"frame": 0, "fenced": 0, "since": 0, "dead": 0}, \
        lambda r: r["since"] == 1 and r["fenced"] == 0 and r["mark"] == 0 and r["frame"] == 0


def end_fencing(mutation, symmetric):
    """Bias.swift: a multicast becomes biased. A remover that found it fenced, under the lock, has
    made a full fence only. An invocation that finds it biased finds the remover's mark."""
    look = "" if mutation == "fenced_read_relaxed" else "acquire"
    light = [F()] if symmetric else []
    remover = [LOCK(), R("fenced", "was", ""), W("dead", 1), UNLOCK(), F(),
               R("frame", "frame", "acquire")]
    change = [LOCK(), W("fenced", 0, "release"), UNLOCK()]
    invoker = [W("frame", 1), *light, R("fenced", "fenced", look), R("dead", "mark")]
    return [remover, change, invoker], {"lock": 0, "frame": 0, "fenced": 1, "dead": 0}, \
        lambda r: (r["was"] == 1 and r["fenced"] == 0 and r["mark"] == 0 and r["frame"] == 0)


def rules(mutation, symmetric):
    """Policies.currentRules, locks: an invocation of an occupant that has ended reads those of the
    next one. It finds then that its own has ended."""
    publish = "" if mutation == "rules_set_relaxed" else "release"
    look = "" if mutation == "rules_read_relaxed" else "acquire"
    change = [W("handle", 0), W("rules", 2, publish)]
    invoker = [R("rules", "rules", look), R("handle", "handle")]
    return [change, invoker], {"handle": 1, "rules": 1}, \
        lambda r: r["rules"] == 2 and r["handle"] == 1


# ---- libmulticast-local --------------------------------------------------------------------------

def sleeping_peer(mutation, symmetric):
    """go_to_sleep() and ring_show(): a reader says that it sleeps, and looks at the head; a
    publisher stores the head, and looks whether it sleeps. One of both sees the other."""
    reader = [W("sleeps", 1), *([] if mutation == "no_fence_of_reader" else [F()]),
              R("head", "head", "acquire")]
    publisher = [W("head", 1, "release"), *([] if mutation == "no_fence_of_publisher" else [F()]),
                 R("sleeps", "sleeps")]
    return [reader, publisher], {"sleeps": 0, "head": 0}, \
        lambda r: r["head"] == 0 and r["sleeps"] == 0


def overwritten(mutation, symmetric):
    """show_oldest() and oldest_of(): who has copied new bytes sees the new `oldest`."""
    release = [] if mutation == "no_release_fence" else [F("release")]
    acquire = [] if mutation == "no_acquire_fence" else [F("acquire")]
    publisher = [W("oldest", 1), *release, W("bytes", 2)]
    reader = [R("bytes", "bytes"), *acquire, R("oldest", "oldest")]
    return [publisher, reader], {"oldest": 0, "bytes": 1}, \
        lambda r: r["bytes"] == 2 and r["oldest"] == 0


def dropped(mutation, symmetric):
    """show_oldest() and catch_up_at_once(): the count that `counted` names is whole, if `oldest` is
    the same. The third count is written where the first one was."""
    order = "" if mutation == "counted_relaxed" else "release"
    look = "" if mutation == "counted_read_relaxed" else "acquire"
    release = [] if mutation == "no_release_fence" else [F("release")]
    acquire = [] if mutation == "no_acquire_fence" else [F("acquire")]
    publisher = [W("count", 1), W("counted", 1, order), W("oldest", 2), *release, W("count", 2)]
    reader = [R("counted", "counted", look), R("count", "count"), *acquire, R("oldest", "oldest")]
    return [publisher, reader], {"oldest": 1, "count": 0, "counted": 0}, \
        lambda r: r["counted"] == 1 and r["oldest"] == 1 and r["count"] != 1


def shown(mutation, symmetric):
    """ring_show() and reader_read(): entries before the head are whole. The same for `begin`, and
    for `delivered` of the statistics."""
    return message(mutation, depends=False)


def tail(mutation, symmetric):
    """store_tail() and ring_look(): what a reader has read may be overwritten."""
    order = "" if mutation == "tail_relaxed" else "release"
    look = "" if mutation == "tail_read_relaxed" else "acquire"
    reader = [R("bytes", "bytes"), W("tail", 1, order)]
    publisher = [R("tail", "tail", look), W("bytes", 2, when=("tail", 1))]
    return [reader, publisher], {"bytes": 1, "tail": 0}, lambda r: r["bytes"] == 2


PROGRAMS = [
    removal, second_removal, call_ends, withdrawal, frame, other_list, lists, last_reader, epoch,
    fenced_epoch, next_occupant, entries, slab, block, contents, table, place, default, policies,
    interest, occupant, record, woken, next_owner, references, calls_over, last_member,
    end_of_lifetime, lock, head, position, head_under_lock, started, failed, owner, invokers,
    first_invoker, begin_fencing, end_fencing, rules, sleeping_peer, overwritten, dropped, shown, tail,
]

# Of each mutation: whether it is noticed with membarrier, and without; or redundant, for the reason
# above it.
MUTATIONS = [
    (removal, "heavy_fence", "noticed", "noticed"),
    (removal, "light_fence", None, "noticed"),
    # The fence behind it orders it. In the sources both are releases: not every reader has a fence.
    (removal, "hazard_set_relaxed", "redundant", "redundant"),
    (removal, "mark_set_relaxed", "redundant", "redundant"),
    # Without membarrier: an invocation that has not read the mark had published its hazard before,
    # by its own full fence. The lock, and then its hazard, are read after the mark was stored.
    (second_removal, "prior_fence", "noticed", "redundant"),
    (call_ends, "hazard_cleared_relaxed", "noticed", "noticed"),
    (call_ends, "hazard_read_relaxed", "noticed", "noticed"),
    (withdrawal, "frame_withdrawn_relaxed", "noticed", "noticed"),
    # A store behind a branch waits for it. The language knows no such order.
    (withdrawal, "target_read_relaxed", "redundant", "redundant"),
    (frame, "target_published_relaxed", "noticed", "noticed"),
    (frame, "target_read_relaxed", "noticed", "noticed"),
    (frame, "fields_after_target", "noticed", "noticed"),
    # A fence that comes between the two stores of the frame comes before the list is read.
    (other_list, "list_cleared_after_frame", "redundant", "redundant"),
    (other_list, "list_not_cleared", "noticed", "noticed"),
    (lists, "reclaimed_without_fence", "noticed", "noticed"),
    (last_reader, "retired_epoch_set_after_fence", "noticed", "noticed"),
    (epoch, "epoch_advanced_relaxed", "noticed", "noticed"),
    (epoch, "epoch_read_relaxed", "noticed", "noticed"),
    (epoch, "epoch_advanced_before_list", "noticed", "noticed"),
    # Without membarrier: the same reason as for a second removal.
    (fenced_epoch, "epoch_read_after_fence", "noticed", "redundant"),
    # The old handle is gone before the old list, and the new handle is there before the new list:
    # each of these two orders is enough.
    (next_occupant, "handle_cleared_after_list", "redundant", "redundant"),
    (next_occupant, "handle_set_relaxed", "redundant", "redundant"),
    (next_occupant, "list_set_relaxed", "redundant", "redundant"),
    (next_occupant, "no_order_of_handle_and_list", "noticed", "noticed"),
    (next_occupant, "list_read_relaxed", "noticed", "noticed"),
    (next_occupant, "handle_read_before_list", "noticed", "noticed"),
    (entries, "count_published_relaxed", "noticed", "noticed"),
    (entries, "count_read_relaxed", "noticed", "noticed"),
    (slab, "published_relaxed", "noticed", "noticed"),
    (block, "published_relaxed", "noticed", "noticed"),
    (contents, "published_relaxed", "noticed", "noticed"),
    (table, "published_relaxed", "noticed", "noticed"),
    (default, "published_relaxed", "noticed", "noticed"),
    (policies, "published_relaxed", "noticed", "noticed"),
    # What is read through an address waits for the address. The sources have an acquire because the
    # language, and a compiler, know no such order.
    (slab, "read_relaxed", "redundant", "redundant"),
    (block, "read_relaxed", "redundant", "redundant"),
    (contents, "read_relaxed", "redundant", "redundant"),
    (table, "read_relaxed", "redundant", "redundant"),
    (default, "read_relaxed", "redundant", "redundant"),
    (policies, "read_relaxed", "redundant", "redundant"),
    (place, "published_relaxed", "noticed", "noticed"),
    (place, "read_relaxed", "noticed", "noticed"),
    (interest, "published_relaxed", "noticed", "noticed"),
    (occupant, "published_relaxed", "noticed", "noticed"),
    (occupant, "read_relaxed", "noticed", "noticed"),
    (record, "published_relaxed", "noticed", "noticed"),
    (record, "read_relaxed", "noticed", "noticed"),
    (woken, "published_relaxed", "noticed", "noticed"),
    (woken, "read_relaxed", "noticed", "noticed"),
    (next_owner, "given_back_relaxed", "noticed", "noticed"),
    (next_owner, "taken_relaxed", "noticed", "noticed"),
    (references, "counted_without_acquire", "noticed", "noticed"),
    (references, "counted_without_release", "noticed", "noticed"),
    (calls_over, "count_read_relaxed", "noticed", "noticed"),
    (calls_over, "counted_without_release", "noticed", "noticed"),
    (last_member, "unfinished_read_relaxed", "noticed", "noticed"),
    (last_member, "finished_without_release", "noticed", "noticed"),
    (end_of_lifetime, "begun_relaxed", "noticed", "noticed"),
    (end_of_lifetime, "finished_without_acquire", "noticed", "noticed"),
    (lock, "taken_relaxed", "noticed", "noticed"),
    (lock, "released_relaxed", "noticed", "noticed"),
    (head, "taken_without_release", "noticed", "noticed"),
    (head, "closed_without_acquire", "noticed", "noticed"),
    (position, "position_read_relaxed", "noticed", "noticed"),
    (position, "taken_without_release", "noticed", "noticed"),
    # The handle comes later, and by an order of its own.
    (started, "started_relaxed", "redundant", "redundant"),
    # The lock orders both, here and in the next one.
    (failed, "failed_relaxed", "redundant", "redundant"),
    (head_under_lock, "head_set_relaxed", "redundant", "redundant"),
    (owner, "handle_set_relaxed", "noticed", "noticed"),
    (owner, "handle_read_relaxed", "noticed", "noticed"),
    # The read of the handle before it is an acquire, which orders it.
    (owner, "owner_read_relaxed", "redundant", "redundant"),
    (invokers, "invokers_read_relaxed", "noticed", "noticed"),
    # The lock has put the writer's change into the one memory. The language asks for a release.
    (invokers, "several_published_relaxed", "redundant", "redundant"),
    (first_invoker, "no_fence_after_lock", "noticed", "noticed"),
    (first_invoker, "no_fence_after_change", "noticed", "noticed"),
    (first_invoker, "unlocked_relaxed", "noticed", "noticed"),
    (first_invoker, "lock_read_relaxed", "noticed", "noticed"),
    # Without membarrier none is biased.
    (begin_fencing, "fencing_without_barrier", "noticed", None),
    (begin_fencing, "asked_before_frame", "noticed", None),
    (end_fencing, "fenced_read_relaxed", "noticed", None),
    (rules, "rules_set_relaxed", "noticed", "noticed"),
    (rules, "rules_read_relaxed", "noticed", "noticed"),
    (sleeping_peer, "no_fence_of_reader", "noticed", "noticed"),
    (sleeping_peer, "no_fence_of_publisher", "noticed", "noticed"),
    (overwritten, "no_release_fence", "noticed", "noticed"),
    (overwritten, "no_acquire_fence", "noticed", "noticed"),
    (dropped, "counted_relaxed", "noticed", "noticed"),
    (dropped, "counted_read_relaxed", "noticed", "noticed"),
    (dropped, "no_release_fence", "noticed", "noticed"),
    (dropped, "no_acquire_fence", "noticed", "noticed"),
    (shown, "published_relaxed", "noticed", "noticed"),
    (shown, "read_relaxed", "noticed", "noticed"),
    (tail, "tail_relaxed", "noticed", "noticed"),
    # A store behind a branch waits for it. The language knows no such order.
    (tail, "tail_read_relaxed", "redundant", "redundant"),
]
