"""A model of processors with a weaker memory order than x86, namely ARMv8 and RISC-V.

The machine is multi-copy atomic, that is, all threads see the same memory. A thread executes its
operations in any order that these rules allow. An operation waits for an earlier operation of the
same program if

- both access the same word, or one of them is a full fence;
- a fence between them orders them: a release fence orders all operations before it with the
  stores after it, and an acquire fence orders the loads before it with all operations after it;
- the earlier operation is an acquire, or the later one is a release;
- the earlier operation is a release and the later one is an acquire (ARMv8 without ldapr; off
  with RCPC);
- the later operation depends on a value that the earlier one has read, through its address, its
  stored value or, if it is a store, a branch before it.

A branch does not delay a load, because processors execute loads speculatively. A compiler fence is
not an operation of the machine. membarrier executes a full fence in each of the other threads, at a
moment when that thread has executed all operations before some point of its program and none after
it. It is also a full fence for the calling thread. A critical section begins with an acquire and
ends with a release. It is therefore not a full fence, and operations outside it can move into it.

A program has few steps and no loops, and each of its threads begins and ends once.
"""

READ, WRITE, CHANGE, FENCE, BARRIER = "read", "write", "change", "fence", "membarrier"


class Op:
    def __init__(self, kind, word=None, value=None, into=None, order="", after=(), when=None,
                 once=None):
        self.kind, self.word, self.value, self.into = kind, word, value, into
        self.order = order  # "acquire", "release" or both
        self.after = after  # the registers that the address or the value depends on
        self.when = when    # (register, value): a branch, taken if they are equal
        self.once = once    # waits until the word contains this value


def F(order=""):
    return Op(FENCE, order=order)


def B():
    return Op(BARRIER)


def predecessors(thread, rcpc):
    """For each operation of a thread, returns the operations that have to be executed before it."""
    result = []
    for place, op in enumerate(thread):
        before = set()
        for other_place in range(place):
            other = thread[other_place]
            # A load after a release fence does not wait for the fence, and an acquire fence does
            # not wait for preceding stores.
            fence = (op.kind in (FENCE, BARRIER) and
                     not (op.order == "acquire" and other.kind == WRITE)) or \
                (other.kind in (FENCE, BARRIER) and
                 not (other.order == "release" and op.kind == READ))
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


class State:
    """A state of the machine consists of the contents of memory and registers, and of the
    operations that each thread has executed."""

    def __init__(self, memory, done, registers=(), passed=()):
        self.memory, self.done, self.registers, self.passed = memory, done, registers, passed

    def key(self):
        return self.memory, self.done, self.registers, self.passed

    def with_memory(self, word, value):
        memory = tuple((w, value if w == word else old) for w, old in self.memory)
        return State(memory, self.done, self.registers, self.passed)

    def with_register(self, into, value):
        registers = tuple(sorted((*self.registers, (into, value))))
        return State(self.memory, self.done, registers, self.passed)

    def with_done(self, t, place):
        done = self.done[:t] + (self.done[t] | {place},) + self.done[t + 1:]
        return State(self.memory, done, self.registers, self.passed)

    def with_passed(self, moment):
        return State(self.memory, self.done, self.registers, tuple(sorted((*self.passed, moment))))


def execute(op, state):
    """Returns the state after an operation, or None if the operation has to wait."""
    value = dict(state.memory).get(op.word)
    if op.kind == READ:
        return state.with_register(op.into, value)
    if op.when and dict(state.registers).get(op.when[0]) != op.when[1]:
        return state
    if op.kind == WRITE:
        return state.with_memory(op.word, op.value)
    if op.kind == CHANGE:
        if op.once is not None and value != op.once:
            return None
        changed = state.with_memory(op.word, op.value(value))
        return changed.with_register(op.into, value) if op.into else changed
    return state


def barrier_steps(t, place, state):
    """Returns the states that can follow during a membarrier. It executes a full fence in the other
    threads, one by one, and is complete after the last of them."""
    waiting = [u for u in range(len(state.done)) if u != t and (t, place, u) not in state.passed]
    if not waiting:
        return [state]
    # A membarrier can execute its fence in a thread if the thread has executed all operations up to
    # some point and none after that point.
    return [state.with_passed((t, place, u)) for u in waiting
            if state.done[u] == frozenset(range(len(state.done[u])))]


def steps(threads, orders, state):
    for t, thread in enumerate(threads):
        for place, op in enumerate(thread):
            if place in state.done[t] or not orders[t][place] <= state.done[t]:
                continue
            if op.kind == BARRIER:
                for next_state in barrier_steps(t, place, state):
                    yield next_state.with_done(t, place) if next_state is state else next_state
            else:
                next_state = execute(op, state)
                if next_state:
                    yield next_state.with_done(t, place)


def outcomes(threads, memory, rcpc):
    """Returns all combinations of final register values that are possible."""
    orders = [predecessors(thread, rcpc) for thread in threads]
    start = State(tuple(sorted(memory.items())), tuple(frozenset() for _ in threads))
    seen, stack, ends = {start.key()}, [start], []
    while stack:
        state = stack.pop()
        is_end = True
        for next_state in steps(threads, orders, state):
            is_end = False
            if next_state.key() not in seen:
                seen.add(next_state.key())
                stack.append(next_state)
        if is_end:
            ended = all(len(d) == len(t) for d, t in zip(state.done, threads))
            assert ended, "a program that hangs"
            ends.append(dict(state.registers))
    return ends
