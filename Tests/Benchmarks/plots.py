"""Draws the plots of a run from its results."""

import io
import re

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from contenders import style
from figures import is_thread_safe, of_measure, plots, text_of

WIDTH = 10  # in inches; the names of the contenders fill a third
MOST_MARKERS = 9  # per line; each marker adds a hundred bytes to the file


def draw(results, directory, only=None):
    """Writes an SVG file for each plot that the measures name, or only for the plot `only`."""
    set_look()
    for plot, measures in plots(results).items():
        if only in (None, plot):
            draw_plot(results, directory / f"{plot}.svg", measures)


def set_look():
    matplotlib.rcParams.update({
        "font.size": 10,
        "font.sans-serif": ["DejaVu Sans", "sans-serif"],
        "svg.fonttype": "none",  # text instead of outlines halves the size
        "svg.hashsalt": "libmulticast",  # makes the file reproducible
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titleweight": "bold",
    })


def draw_plot(results, path, measures):
    series = [shown(of_measure(results, measure), measure.at) for measure in measures]
    heights = [panel_height(measure, found) for measure, found in zip(measures, series)]
    image, panels = pyplot.subplots(
        len(measures), figsize=(WIDTH, sum(heights)), squeeze=False,
        gridspec_kw={"height_ratios": heights}, layout="constrained")
    for panel, measure, found in zip(panels[:, 0], measures, series):
        draw_panel(panel, measure, found, results)
    save(image, path)


def shown(found, at):
    """Returns the points that the plot shows: all, or only those at the parameter `at`."""
    if at is None:
        return found
    return {contender: {at: points[at]} for contender, points in found.items() if at in points}


def save(image, path):
    text = io.StringIO()
    image.savefig(text, metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    pyplot.close(image)
    path.write_text(compact(text.getvalue()))


def compact(svg):
    """Halves the file size by writing one line per group and rounding coordinates to hundredths of
    a point."""
    lines = re.sub(r"\s*\n\s*", " ", svg.strip()).replace(" <g ", "\n<g ")
    return re.sub(r"(\.\d\d)\d+", r"\1", lines) + "\n"


def parameters(found):
    return sorted({parameter for points in found.values() for parameter in points})


def panel_height(measure, found):
    return 4.6 if len(parameters(found)) > 1 else 1.3 + 0.3 * len(found)


def draw_panel(panel, measure, found, results):
    panel.set_title(measure.title, loc="left")
    panel.grid(True, which="major", alpha=0.25)
    names = {
        contender: contender + ("" if is_thread_safe(results, contender) else " (one thread)")
        for contender in found
    }
    if len(parameters(found)) > 1:
        draw_lines(panel, measure, found, names)
    else:
        draw_dots(panel, measure, found, names)


def better(measure):
    return "lower is better" if measure.lower_is_better else "higher is better"


def count_of(x):
    """Formats a count as 1k, 10k or 1M, but writes powers of two in full."""
    for scale, letter in ((10**6, "M"), (1000, "k")):
        if x > 0 and x % scale == 0:
            return f"{x // scale}{letter}"
    return f"{x:,}"


# ---- A line for each contender -------------------------------------------------------------------


def draw_lines(panel, measure, found, names):
    ends = {}
    for contender, points in found.items():
        points = {x: y for x, y in points.items() if x > 0 or not measure.each}
        xs = sorted(points)
        ys = [points[x] / x if measure.each else points[x] for x in xs]
        look = style(contender)
        panel.plot(xs, ys, color=look.color, marker=look.marker, markersize=4,
                   markevery=step(xs),
                   linewidth=2.4 if contender.startswith("libmulticast") else 1.3,
                   linestyle="-" if names[contender] == contender else "--")
        ends[contender] = (xs[-1], ys[-1])
    set_scales(panel, measure, found)
    name_ends(panel, ends, names)


def step(xs):
    """Returns n such that every nth point has a marker, and a number on the axis."""
    return 1 + (len(xs) - 1) // MOST_MARKERS


def set_scales(panel, measure, found):
    xs = [x for x in parameters(found) if x > 0 or not measure.each]
    if xs[-1] > 8 * max(1, xs[0]):
        panel.set_xscale("log" if xs[0] > 0 else "symlog", base=2)
    shown = xs[:: step(xs)]
    panel.set_xticks(shown, [count_of(x) for x in shown])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel(measure.parameter)

    panel.set_yscale("log")
    low, high = panel.get_ylim()
    steps = (1, 2, 5) if high < 2000 * low else (1,)
    panel.yaxis.set_major_locator(LogLocator(subs=steps))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: text_of(measure, y)))
    of_each = f"divided by the number of {measure.parameter}, " if measure.each else ""
    panel.set_ylabel(f"{of_each}{better(measure)}")


def name_ends(panel, ends, names):
    """Writes each name next to the end of its line, and moves names up or down if they would
    overlap."""
    panel.figure.canvas.draw()
    to_axes = panel.transData + panel.transAxes.inverted()
    wanted = {contender: to_axes.transform(end)[1] for contender, end in ends.items()}
    for contender, height in spread(wanted, gap=0.052).items():
        panel.annotate(
            names[contender], xy=ends[contender], xycoords="data",
            xytext=(1.04, height), textcoords="axes fraction", va="center",
            color=style(contender).color, annotation_clip=False,
            weight="bold" if contender.startswith("libmulticast") else "normal",
            arrowprops={"arrowstyle": "-", "color": style(contender).color, "alpha": 0.4,
                        "linewidth": 0.7, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 3})


def spread(heights, gap):
    """Adjusts the heights so that they are at least `gap` apart and below the title."""
    names = sorted(heights, key=heights.get)
    placed = []
    for name in names:
        placed.append(max(heights[name], placed[-1] + gap if placed else 0))
    ceiling = 0.97
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return dict(zip(names, placed))


# ---- A dot for each contender --------------------------------------------------------------------


def draw_dots(panel, measure, found, names):
    values = {contender: next(iter(points.values())) for contender, points in found.items()}
    order = sorted(values, key=values.get, reverse=measure.lower_is_better)
    for row, contender in enumerate(order):
        look = style(contender)
        is_safe = names[contender] == contender
        panel.plot(values[contender], row, color=look.color, marker=look.marker, markersize=8,
                   fillstyle="full" if is_safe else "none")
        panel.annotate(text_of(measure, values[contender]), (values[contender], row),
                       xytext=(8, 0), textcoords="offset points", va="center")
    panel.set_yticks(range(len(order)), [names[contender] for contender in order])
    panel.set_ylim(-0.6, len(order) - 0.4)
    panel.set_xlabel(better(measure))
    low, high = min(values.values()), max(values.values())
    if low > 0:
        panel.set_xscale("log")
        panel.set_xlim(low / 1.5, high * 1.5 * (high / low) ** 0.15)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        panel.xaxis.set_minor_locator(NullLocator())
    else:
        panel.set_xlim(-high / 20, high * 1.15)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: text_of(measure, x)))
