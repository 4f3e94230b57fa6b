"""Looks up figures in results.json, and formats them with their units."""

from contenders import position
from measures import MEASURES

UNITS = {
    "ns": [(1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
    "per second": [(1, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")],
    "bytes": [(1, "B"), (1e3, "kB"), (1e6, "MB")],
    "KiB": [(1, "KiB")],
    "": [(1, ""), (1e3, "k"), (1e6, "M")],
}


def of_measure(results, measure):
    """Returns a dictionary contender -> parameter -> figure, with the contenders in their usual
    order."""
    found = results["figures"].get(measure.key, {})
    return {
        contender: {int(p): both[measure.statistic] for p, both in found[contender].items()}
        for contender in sorted(found, key=position)
    }


def measured(results):
    return [measure for measure in MEASURES if measure.key in results["figures"]]


def plots(results):
    """Returns a dictionary plot -> list of its measures."""
    grouped = {}
    for measure in measured(results):
        if measure.plot:
            grouped.setdefault(measure.plot, []).append(measure)
    return grouped


def is_thread_safe(results, contender):
    return contender not in results["not_thread_safe"]


def text_of(measure, value, digits=3):
    """Formats the value with its unit, rounded to `digits` significant digits."""
    value = float(f"{value:.{digits}g}")
    scale, unit = [each for each in UNITS[measure.unit] if each[0] <= max(1, abs(value))][-1]
    number = f"{value / scale:.{digits}g}"
    if "e" in number:
        number = f"{value / scale:.0f}"
    return f"{number} {unit}".strip()
