"""Reads the file `programs`. The comment at its top describes the format."""

import re
from pathlib import Path

from machine import B, CHANGE, F, Op, READ, WRITE

MARK = r"\*[a-z]?[?!-]?"
TOKEN = re.compile(rf"(?:if\((\w+)==(\d+)\))?([^:*]+)((?::\w+(?:{MARK})*)*)((?:{MARK})*)$")
BODY = re.compile(r"(?:(\w+)<)?(\w+)(?:@(\w+))?(?:([=+-])(\d+)|!(\d+)(?:!(\d+))?)?$")


def changed(sign, number, first, second):
    """Returns a function that computes the new value of a changed word from its old value."""
    if second is not None:
        return lambda old: int(second) if old == int(first) else old
    if first is not None:
        return lambda old: int(first)
    return lambda old: old + int(sign + number)


def operation(body, when, order, symmetric):
    """Returns the operation for a token without marks, or None if the token does not stand for an
    operation."""
    if body in ("fence", "light", "heavy"):
        if body == "light" and not symmetric:
            return None
        return B() if body == "heavy" and not symmetric else F(order)
    if body in ("lock", "unlock"):
        if body == "lock":
            return Op(CHANGE, "lock", lambda old: 1, order=order, once=0)
        return Op(WRITE, "lock", 0, order=order)
    into, word, after, sign, number, first, second = BODY.match(body).groups()
    if sign == "=":
        return Op(WRITE, word, int(number), order=order, when=when)
    if sign or first:
        return Op(CHANGE, word, changed(sign, number, first, second), into, order, when=when)
    return Op(READ, word, None, into, order, (after,) if after else (), when)


class Program:
    def __init__(self, lines):
        head, memory, *threads, never = [line for line in lines if not line.startswith("#")]
        self.names = head.split(":")[0].split(", ")
        self.memory = {word: int(value) for word, value in re.findall(r"(\w+)=(\d+)", memory)}
        self.threads = [thread.split() for thread in threads]
        self.never = never.split("never ")[1]
        self.mutations = {}  # by name: the mark that says whether the mutation must be noticed
        self.build("", False)

    def build(self, mutation, symmetric):
        """Returns the threads, the initial memory, and a function that tests for the forbidden
        outcome."""
        def is_made(marks, what):
            made = False
            for mark in re.findall(MARK, marks):
                letter = re.sub(r"\W", "", mark)
                name = letter or f"{t + 1}: {what}"
                kind = mark[-1] if mark[-1] in "?!-" else ""
                self.mutations[name] = self.mutations.get(name) or kind
                made |= name == mutation
            return made

        threads = []
        for t, tokens in enumerate(self.threads):
            operations, exchanged = [], False
            for place, token in enumerate(tokens):
                if token.startswith("*"):
                    exchanged = is_made(token, re.sub(MARK, "", tokens[place + 1]) + " first")
                    continue
                register, value, body, orders, marks = TOKEN.match(token).groups()
                token = re.sub(MARK, "", token)
                order = " ".join(
                    word for word, its in re.findall(rf":(\w+)((?:{MARK})*)", orders)
                    if not is_made(its, f"{token} without {word}"))
                if not orders:
                    order = {"lock": "acquire", "unlock": "release"}.get(body, "")
                when = (register, int(value)) if register else None
                is_left_out = is_made(marks, f"without {token}") or (
                    body == "fence" and orders and not order)
                one = operation(body, when, order, symmetric)
                if one and not is_left_out:
                    operations.insert(len(operations) - exchanged, one)
                    exchanged = False
            threads.append(operations)
        return threads, self.memory, lambda registers: eval(self.never, {}, registers)


PROGRAMS = []
for block in (Path(__file__).parent / "programs").read_text().split("\n\n"):
    if "\n  never " in block:
        PROGRAMS.append(Program(block.strip().split("\n")))
