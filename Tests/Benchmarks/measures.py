"""What is measured: one entry for each figure, and nothing that is not here is accepted."""

from typing import NamedTuple


class Measure(NamedTuple):
    name: str  # what benchmarks have before the first slash
    title: str
    parameter: str  # what the number after the last slash counts
    picture: str = ""  # shows the measures that name it, one panel each; "": in the tables alone
    figure: str = "real_time"  # of Google Benchmark's JSON, or a counter of the program's
    unit: str = "ns"
    lower_is_better: bool = True
    each: bool = False  # drawn as a share of the parameter: for each delegate
    statistic: str = "best"  # or "median", where luck makes a repetition too good to be true

    @property
    def key(self):
        return self.name if self.figure == "real_time" else f"{self.name}, {self.figure}"


def rate(name, title, parameter, picture, figure="items_per_second"):
    """What threads do together: where they happen not to meet, they look faster than they are."""
    return Measure(name, title, parameter, picture, figure, "per second", False,
                   statistic="median")


def latency(figure, part):
    return Measure("queued latency", f"From queueing to the call, {part}", "threads that invoke",
                   "latency", figure, statistic="median")


def opened(figure, title, unit):
    return Measure("open", title, "", "open", figure, unit, statistic="median")


def meanwhile(verb, title):
    return Measure(f"{verb} while another thread invokes", f"{title} while another thread invokes",
                   "delegates", "change", statistic="median")


MEASURES = [
    Measure("invoke", "Invoking", "delegates", "invoke", each=True),
    Measure("invoke delegates of a library", "Invoking delegates that stand in another library",
            "delegates", "invoke", each=True),

    rate("invoke one multicast from threads", "Threads invoke the same 16 delegates, together",
         "threads", "threads"),
    rate("invoke one each from threads", "Threads invoke 16 delegates each of their own, together",
         "threads", "threads"),
    Measure("invoke while another adds and removes",
            "Invoking 16 delegates while another thread adds and removes", "delegates", "threads",
            statistic="median"),
    rate("invoke while another adds and removes", "What that other thread adds and removes",
         "delegates", "threads", "changes_per_second"),

    Measure("add", "Adding, from none to so many", "delegates", "add"),
    Measure("add_many", "Adding many in one call, each", "delegates", "add"),
    Measure("remove by token, random order", "Removing all in random order, each", "delegates",
            "remove"),
    Measure("remove by token, last first", "Removing all from last to first, each", "delegates",
            "remove"),
    Measure("remove by delegate", "Removing one by function and context", "delegates", "remove"),
    Measure("contains", "Looking for one by function and context", "delegates", "remove"),
    Measure("create and destroy", "Creating and destroying", "", "create"),
    Measure("create, add one, destroy", "Creating, adding one, destroying", "delegates", "create"),
    meanwhile("remove", "Removing one of 100"),
    meanwhile("add and remove", "Adding and removing one beside 100"),
    meanwhile("remove_nowait", "Removing one of 100 without waiting"),
    meanwhile("remove_all", "Removing all 100, each"),
    meanwhile("destroy", "Destroying with 100, each"),
    Measure("membarrier", "The system's memory barrier, alone", "", "change", statistic="median"),

    Measure("queued call, same thread", "Queueing and running a call on one thread",
            "bytes of payload", "queue"),
    rate("queued throughput", "Queued calls, bounded by the producers", "threads that invoke",
         "queue"),
    rate("queued throughput, full queue blocks", "Queued calls, bounded by the queue",
         "threads that invoke", "queue"),
    rate("queued throughput by payload", "Queued calls by the size of the payload",
         "bytes of payload", "queue"),
    latency("p50", "median"),
    latency("p99", "one in a hundred is slower"),
    latency("p999", "one in a thousand is slower"),

    Measure("notify by name", "Notifying the observer of a name", "names", "broadcaster"),
    Measure("look up by name", "Looking up a name", "names", "broadcaster"),
    Measure("invoke without a name", "The same notification, looked up before", "names",
            "broadcaster"),
    rate("look up by name from threads", "Threads look up names, together", "threads",
         "broadcaster"),

    Measure("bytes of an empty one", "Memory of an empty one", "", "memory", "empty", "bytes"),
    Measure("bytes of an empty one", "What stays when it has been destroyed", "", "", "stay",
            "bytes"),
    Measure("bytes", "Memory of a delegate", "delegates", "memory", "each", "bytes"),
    Measure("bytes", "What stays of a delegate when its multicast has been destroyed", "delegates",
            "", "stay", "bytes"),

    opened("ns", "Opening the library", "ns"),
    opened("resident_kb", "Memory that is resident then", "KiB"),
    opened("private_kb", "Of that, private to the process", "KiB"),
    opened("size_kb", "The file, stripped", "KiB"),
    opened("needs", "Other libraries that come with it, libc aside", ""),
]

# ---- The README ----------------------------------------------------------------------------------

PICTURE = "invoke"

# Of the names for a column that which was measured stands there.
COLUMNS = {
    "bare loop": ["bare loop in a library", "bare loop in the executable"],
    "libmulticast": ["libmulticast", "libmulticast, wait and run"],
    "Boost.Signals2": ["Boost.Signals2"],
    "libsigc++": ["libsigc++"],
    "GLib": ["GObject signals", "GAsyncQueue"],
    "Qt 5": ["Qt 5 signals", "Qt 5 queued connection"],
    "liburcu": ["liburcu, array"],
    "mutex": ["mutex, std::function", "mutex, condition, std::deque"],
}

# Text, key of the measure, parameter.
HEADLINE = [
    ("invoke 1 delegate", "invoke", 1),
    ("invoke 16", "invoke", 16),
    ("invoke 256", "invoke", 256),
    ("2 threads invoke the same 16", "invoke one multicast from threads, items_per_second", 2),
    ("add, to 1,000", "add", 1000),
    ("remove, from 1,000", "remove by token, random order", 1000),
    ("create and destroy", "create and destroy", 0),
    ("queue and run a call", "queued call, same thread", 16),
    ("queued calls to another thread", "queued throughput, items_per_second", 1),
    ("memory of an empty one", "bytes of an empty one, empty", 0),
    ("of each of 100 delegates", "bytes, each", 100),
]


def is_better(measure, one, other):
    return one < other if measure.lower_is_better else one > other
