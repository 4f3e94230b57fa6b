"""The list of measures, with one entry for each figure. A figure without an entry is an error."""

from typing import NamedTuple


class Measure(NamedTuple):
    name: str  # the part of a benchmark's name before the first slash
    title: str
    parameter: str  # what the number after the last slash counts
    plot: str = ""  # the plot, with one panel for each measure; "": only in the tables
    figure: str = "real_time"  # a field of Google Benchmark's JSON, or a counter of the program
    unit: str = "ns"
    lower_is_better: bool = True
    each: bool = False  # divided by the parameter in the plot
    at: int | None = None  # the only parameter that the plot shows
    statistic: str = "best"  # or "median" if a repetition can be too fast by chance

    @property
    def key(self):
        return self.name if self.figure == "real_time" else f"{self.name}, {self.figure}"


def rate(name, title, parameter, plot, figure="items_per_second", at=None):
    """Returns a measure for the combined rate of several threads. Its statistic is the median,
    because the rate is too high in repetitions in which the threads happen to run at different
    times."""
    return Measure(name, title, parameter, plot, figure, "per second", False, statistic="median",
                   at=at)


def latency(figure, part):
    return Measure("queued latency", f"From queueing to the call: {part}", "invoking threads",
                   "latency", figure, statistic="median")


def opened(figure, title, unit):
    return Measure("open", title, "", "open", figure, unit, statistic="median")


def meanwhile(verb, title, of=""):
    return Measure(f"{verb} while another thread invokes",
                   f"{title} while another thread invokes{of}", "delegates", "change",
                   statistic="median")


MEASURES = [
    Measure("invoke", "Invoke all delegates", "delegates", "invoke", each=True),
    Measure("invoke delegates of a library", "Invoke delegates whose code is in another library",
            "delegates", "library", each=True),
    Measure("invoke different functions", "Invoke delegates that are different functions",
            "delegates"),

    Measure("ask whether anybody listens", "Ask whether there is a delegate", "delegates"),

    rate("invoke one multicast from threads",
         "Two threads invoke the same 16 delegates: invocations by both", "threads", "together",
         at=2),
    rate("invoke one each from threads",
         "Each thread invokes 16 delegates of its own: invocations by all threads", "threads",
         "threads"),
    Measure("invoke while another adds and removes",
            "Invoke 16 delegates while another thread adds and removes", "delegates", "threads",
            statistic="median"),
    rate("invoke while another adds and removes", "Adds and removals of that other thread",
         "delegates", "threads", "changes_per_second"),

    Measure("add", "Add one delegate after the other: time for each", "delegates", "add"),
    Measure("add_many", "Add many delegates in one call: time for each", "delegates", "add"),
    Measure("remove by token, random order", "Remove all in random order: time for each",
            "delegates", "remove"),
    Measure("remove by token, last first", "Remove all from last to first: time for each",
            "delegates", "remove"),
    Measure("remove by delegate", "Remove one by function and context", "delegates", "remove"),
    Measure("contains", "Find one by function and context", "delegates", "remove"),
    Measure("create and destroy", "Create and destroy", "", "create"),
    Measure("create, add one, destroy", "Create, add one delegate, destroy", "delegates",
            "create"),
    Measure("add and remove", "Add and remove one", "delegates", "create"),
    Measure("add and remove with release", "Add and remove one that has a release function",
            "delegates", "create"),
    meanwhile("remove", "Remove one of 100"),
    meanwhile("add and remove", "Add and remove one next to 100"),
    meanwhile("remove_nowait", "Remove one of 100 without waiting"),
    meanwhile("remove_all", "Remove all 100", ": time for each"),
    meanwhile("destroy", "Destroy with 100 delegates", ": time for each"),
    Measure("change and invoke from two threads",
            "Two threads add one beside 16, remove it, and invoke: time of a round",
            "invocations for each change", "range", statistic="median"),
    Measure("membarrier", "The membarrier system call alone", "", "change", statistic="median"),

    Measure("queued call, same thread", "Queue a call and run it, on one thread",
            "bytes of payload", "queue"),
    rate("queued throughput", "Queued calls; the producers limit themselves", "invoking threads",
         "queue"),
    rate("queued throughput, full queue blocks", "Queued calls; a full queue blocks the producers",
         "invoking threads", "queue"),
    rate("queued throughput by payload", "Queued calls by the size of the payload",
         "bytes of payload", "queue"),
    latency("p50", "median"),
    latency("p99", "99th percentile"),
    latency("p999", "99.9th percentile"),

    Measure("queued payload, 1 delegate", "Queue a call with a payload and run it, on one thread",
            "bytes of payload", "payload"),
    Measure("queued payload, 3 delegates", "Queue three calls with one payload and run them",
            "bytes of payload", "payload"),
    Measure("ask and wait", "Ask another thread and wait for its answer", "", "ask",
            statistic="median"),

    Measure("pause and resume", "Pause one delegate and resume it", "delegates"),
    Measure("count", "Count the delegates", "delegates"),
    Measure("is valid", "Ask whether a registration is valid", "delegates"),
    Measure("enumerate", "Enumerate the delegates, with a function that is called for each",
            "delegates"),

    Measure("connect a method of an object", "C++: connect a method of an object beside 16, and"
            " destroy the object", ""),
    Measure("connect and disconnect a closure", "C++: connect a closure beside 16, and disconnect it",
            "words", "cpp"),
    Measure("whole life of a signal", "C++: a signal with one connection, made, emitted, destroyed",
            "delegates", "cpp"),
    Measure("std::string through a queue", "C++: queue a call with a std::string and run it",
            "bytes of text", "cpp"),

    Measure("notify by name", "Notify the observer of a name", "names", "broadcaster"),
    Measure("look up by name", "Look up a name", "names", "broadcaster"),
    Measure("invoke without a name", "Notify through a multicast that was looked up before",
            "names", "broadcaster"),
    rate("look up by name from threads", "Threads look up names: look-ups by all threads",
         "threads", "broadcaster"),

    Measure("bytes of an empty one", "Memory of an empty multicast", "", "memory", "empty",
            "bytes"),
    Measure("bytes of an empty one", "Memory that is kept after it was destroyed", "", "", "stay",
            "bytes"),
    Measure("bytes", "Memory of each delegate", "delegates", "memory", "each", "bytes"),
    Measure("bytes", "Memory of each delegate that is kept after its multicast was destroyed",
            "delegates", "", "stay", "bytes"),

    opened("ns", "Open the library with dlopen", "ns"),
    opened("resident_kb", "Resident memory that this adds", "KiB"),
    opened("private_kb", "The part of it that is private to the process", "KiB"),
    opened("size_kb", "Size of the file, stripped", "KiB"),
    opened("needs", "Other libraries that are loaded with it, without libc", ""),
]

# ---- The README ----------------------------------------------------------------------------------

PLOT = "together"

# Each column lists contenders, and shows the first of them that was measured.
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

# Each row consists of a text, the key of its measure, and a value of the measure's parameter.
HEADLINE = [
    ("invoke 16 delegates", "invoke", 16),
    ("2 threads invoke the same 16", "invoke one multicast from threads, items_per_second", 2),
    ("add, to 1,000", "add", 1000),
    ("remove while another thread invokes", "remove while another thread invokes", 100),
    ("create and destroy", "create and destroy", 0),
]


def is_better(measure, one, other):
    return one < other if measure.lower_is_better else one > other
