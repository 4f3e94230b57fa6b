"""The style of each contender in the plots, and the order of contenders in tables and plots."""

from typing import NamedTuple


class Style(NamedTuple):
    begins: str  # the beginning of the contender's name
    color: str  # distinguishable, together with the marker, with any colour vision
    marker: str


STYLES = [
    Style("bare loop in a library", "#000000", "x"),
    Style("bare loop in the executable", "#999999", "x"),
    Style("libmulticast, static, handed over", "#44aa99", "H"),
    Style("libmulticast, handed over", "#aa4499", "X"),
    Style("libmulticast, static", "#56b4e9", "s"),
    Style("libmulticast, own thread", "#332288", "h"),
    Style("libmulticast, epoll", "#117733", "*"),
    Style("libmulticast, C++", "#ee6677", "p"),
    Style("libmulticast", "#0072b2", "o"),
    Style("Boost", "#d55e00", "^"),
    Style("libsigc++", "#cc79a7", "v"),
    Style("GObject", "#009e73", "D"),
    Style("GAsyncQueue", "#009e73", "d"),
    Style("GMainContext", "#009e73", "d"),
    Style("Qt", "#e69f00", "P"),
    Style("liburcu", "#8c6d31", "<"),
    Style("eventpp", "#661100", "1"),
    Style("sigslot", "#999933", "2"),
    Style("nano-signal-slot", "#6699cc", "3"),
    Style("mutex", "#882255", ">"),
    Style("libstdc++", "#999999", "p"),
    Style("Linux", "#000000", "p"),  # these contenders measure only a system call
    Style("memory", "#000000", "+"),  # these contenders only read
]


def style(contender):
    return next(style for style in STYLES if contender.startswith(style.begins))


def is_known(contender):
    return any(contender.startswith(style.begins) for style in STYLES)


def is_ours(contender):
    return contender.startswith("libmulticast")


def position(contender):
    """Returns a sort key. libmulticast comes first, and its variants are sorted by the length of
    their names."""
    return (not is_ours(contender), len(contender) * is_ours(contender),
            STYLES.index(style(contender)), contender)
