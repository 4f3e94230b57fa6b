#!/usr/bin/env python3
"""Prints a summary of a timeline: `events N`, `processes N`, `threads N`, and the number of events
of each kind and name. Fails if the timeline is invalid, or if the events of a thread do not nest."""

import collections
import json
import sys


def overlaps(events):
    """Returns the number of events that overlap an earlier event without being nested in it."""
    found, open_ends = 0, []
    # Convert the times back to nanoseconds.
    times = [(round(event["ts"] * 1000), round(event["dur"] * 1000)) for event in events]
    for begin, length in sorted(times, key=lambda time: (time[0], -time[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and begin + length > open_ends[-1]:
            found += 1
        open_ends.append(begin + length)
    return found


def main():
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        print(f"Usage: timeline.py FILE\n\n{__doc__}")
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        records = json.load(file)
    events = [record for record in records if record["ph"] == "X"]
    threads = collections.defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    named = {(record["pid"], record["tid"]) for record in records if record["name"] == "thread_name"}
    print("events", len(events))
    print("processes", len({event["pid"] for event in events}))
    print("threads", len(threads))
    for (kind, name), count in sorted(
            collections.Counter((event["cat"], event["name"]) for event in events).items()):
        print(count, kind, name)
    print("with a queue", sum("queue" in event["args"] for event in events))
    wrong = [thread for thread, own in threads.items() if overlaps(own) or thread not in named]
    if wrong:
        print("threads whose events overlap, or without a name:", wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
