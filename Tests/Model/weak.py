#!/usr/bin/env python3
"""Small programs on a machine with a weaker memory order than x86: ARMv8, RISC-V.

    Tests/Model/weak.py               # every program: what must hold holds
    Tests/Model/weak.py --mutations   # every mutation is noticed, or is redundant

The machine is multi-copy atomic: there is one memory. A thread executes its operations in any order
that these rules allow. An operation waits for one before it in the program, if

- both access the same word, or one of them is a full fence;
- the one before is an acquire, or this one is a release;
- the one before is a release and this one an acquire (ARMv8 without ldapr; off with RCPC);
- this one depends on what the one before has read: by its address or value, or, for a store, by a
  branch.

A branch does not hold up a load: processors execute it early. A compiler fence is no operation
here.
membarrier is an operation that passes a moment in each other thread at which all operations before
a place in its program, and none behind, have been executed. It is a full fence for its own thread.
A critical section begins with an acquire and ends with a release: so others enter it, and it is no
full fence.

These programs have no loops and few steps. They are for what the scenarios in Promela, which have
store buffers, cannot tell: the orders that are redundant there.
"""

import itertools
import sys

READ, WRITE, FENCE, BARRIER = "read", "write", "fence", "membarrier"


class Op:
    def __init__(self, kind, word=None, value=None, into=None, order="", after=(), when=None):
        self.kind, self.word, self.value, self.into = kind, word, value, into
        self.order = order  # "acquire", "release" or both
        self.after = after  # the registers on which the address or the value depends
        self.when = when    # (register, value): a branch; not executed if it differs


def R(word, into, order="", after=(), when=None):
    return Op(READ, word, None, into, order, after, when)


def W(word, value, order="", after=(), when=None):
    return Op(WRITE, word, value, None, order, after, when)


def F(when=None):
    return Op(FENCE, when=when)


def B(when=None):
    return Op(BARRIER, when=when)


def predecessors(thread, rcpc):
    """For each operation those that have to be executed before it."""
    result = []
    for place, op in enumerate(thread):
        before = set()
        for other_place in range(place):
            other = thread[other_place]
            fence = op.kind in (FENCE, BARRIER) or other.kind in (FENCE, BARRIER)
            same = op.word is not None and op.word == other.word
            acquired = "acquire" in other.order
            released = "release" in op.order
            both = "release" in other.order and "acquire" in op.order and not rcpc
            needs = other.into is not None and other.into in op.after
            branch = op.when and other.into == op.when[0] and op.kind != READ
            if fence or same or acquired or released or both or needs or branch:
                before.add(other_place)
        result.append(frozenset(before))
    return result


def outcomes(threads, memory, rcpc):
    """All combinations of registers with which the threads can end."""
    orders = [predecessors(thread, rcpc) for thread in threads]
    words = sorted(memory)
    start = (tuple(memory[w] for w in words), tuple(frozenset() for _ in threads), (), ())
    seen, stack, ends = {start}, [start], []
    while stack:
        values, done, registers, passed = stack.pop()
        known = dict(registers)
        steps = []
        for t, thread in enumerate(threads):
            for place, op in enumerate(thread):
                if place in done[t] or not orders[t][place] <= done[t]:
                    continue
                executed = done[:t] + (done[t] | {place},) + done[t + 1:]
                if op.kind == BARRIER:
                    others = [u for u in range(len(threads)) if u != t]
                    waiting = [u for u in others if (t, place, u) not in passed]
                    for u in waiting:
                        # All up to a place, and none behind it.
                        if done[u] == frozenset(range(len(done[u]))):
                            steps.append((values, done, registers,
                                          tuple(sorted(passed + ((t, place, u),)))))
                    if not waiting:
                        steps.append((values, executed, registers, passed))
                elif op.kind == FENCE:
                    steps.append((values, executed, registers, passed))
                elif op.kind == READ:
                    value = values[words.index(op.word)]
                    after = tuple(sorted((*registers, (op.into, value))))
                    steps.append((values, executed, after, passed))
                else:
                    runs = op.when is None or known.get(op.when[0]) == op.when[1]
                    w = words.index(op.word)
                    changed = values[:w] + (op.value,) + values[w + 1:] if runs else values
                    steps.append((changed, executed, registers, passed))
        if not steps:
            assert all(len(d) == len(t) for d, t in zip(done, threads)), "a program that hangs"
            ends.append(known)
        for step in steps:
            if step not in seen:
                seen.add(step)
                stack.append(step)
    return ends


# ---- The programs --------------------------------------------------------------------------------

# Each is a function of the mutation, "" for none, and of whether both halves of the fence are full
# fences. It returns the threads, the memory at first, and what must never be.

def removal(mutation, symmetric):
    """Removal.swift, InvocationList+Invoke.swift: a hazard against a mark."""
    light = [F()] if symmetric and mutation != "light_fence" else []
    heavy = [] if mutation == "heavy_fence" else [F() if symmetric else B()]
    invoker = [W("hazard", 1, "release"), *light, R("dead", "mark")]
    remover = [W("dead", 1, "release"), *heavy, R("hazard", "hazard", "acquire")]
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


PROGRAMS = [removal, second_removal, call_ends, frame, other_list, lists, last_reader, epoch,
            fenced_epoch, next_occupant, entries]

# Of each mutation: whether it is noticed with membarrier, and without; or redundant, for the reason
# above it.
MUTATIONS = [
    (removal, "heavy_fence", "noticed", "noticed"),
    (removal, "light_fence", None, "noticed"),
    # Without membarrier: an invocation that has not read the mark had published its hazard before,
    # by its own full fence. The lock, and then its hazard, are read after the mark was stored.
    (second_removal, "prior_fence", "noticed", "redundant"),
    (call_ends, "hazard_cleared_relaxed", "noticed", "noticed"),
    (call_ends, "hazard_read_relaxed", "noticed", "noticed"),
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
]


def fails(program, mutation, symmetric, rcpc):
    threads, memory, forbidden = program(mutation, symmetric)
    ends = outcomes(threads, memory, rcpc)
    assert ends
    return any(forbidden(end) for end in ends)


def main():
    if sys.argv[1:] not in ([], ["--mutations"]):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    wrong = 0
    machines = list(itertools.product((False, True), (False, True)))
    if not sys.argv[1:]:
        for program, (symmetric, rcpc) in itertools.product(PROGRAMS, machines):
            if fails(program, "", symmetric, rcpc):
                wrong += 1
                print(f"{program.__name__} fails: symmetric {symmetric}, RCPC {rcpc}")
        print(f"{len(PROGRAMS)} programs, {len(machines)} machines, {wrong} failures")
    else:
        for program, mutation, *expected in MUTATIONS:
            for symmetric in (False, True):
                if expected[symmetric] is None:
                    continue
                found = any(fails(program, mutation, symmetric, rcpc) for rcpc in (False, True))
                word = "noticed" if found else "redundant"
                ok = word == expected[symmetric]
                wrong += not ok
                fences = "symmetric" if symmetric else "asymmetric"
                mark = "" if ok else "  WRONG"
                print(f"{program.__name__:15}{mutation:32}{fences:12}{word}{mark}")
    return 1 if wrong else 0


sys.exit(main())
