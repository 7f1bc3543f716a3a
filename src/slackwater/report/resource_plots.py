"""What policies do with the machine."""

import math
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from slackwater.report.drawing import INK, Plot, bars_plot, from_zero, lines_plot, plot
from slackwater.report.palette import Palette
from slackwater.report.runs import Run, Runs, number
from slackwater.statistics.intervals import Array, Interval, mean_interval

POINTS = 60  # of a curve over time
GIB = 2**30


def throughput(runs: Runs, palette: Palette) -> Plot | None:
    """Plot events per second."""
    return _by_policy(
        runs,
        palette,
        key="throughput",
        title="Throughput",
        caption="Events processed per second by the whole fleet, with 95 % confidence intervals. "
        "More is better; equal where every policy keeps up. Above the offered rate: an arm that "
        "makes up for what it fell behind in the warm-up.",
        label="events/s",
        figure=lambda run: run.throughput_eps,
        form=",.0f",
    )


def overhead(runs: Runs, palette: Palette) -> Plot | None:
    """Plot the controller's share of the CPU."""
    return _by_policy(
        runs,
        palette,
        key="overhead",
        title="Overhead of the controller",
        caption="The controller's CPU in % of all CPU used, itself included, with 95 % confidence "
        "intervals. Less is better.",
        label="% of CPU",
        figure=lambda run: run.overhead_percent,
        form=".2f",
    )


def memory_over_time(runs: Runs, palette: Palette) -> Plot | None:
    """Plot the heap in use."""
    sizes = [
        number(sample.get("heap_max_bytes"))
        for policy in runs.policies
        for run in runs.of(policy, runs.largest)
        for sample in run.samples
    ]
    return _over_time(
        runs,
        palette,
        key="memory",
        title=f"Memory over time, {runs.largest} queries",
        caption="JVM heap in use, mean of the repeats (band: lowest to highest); dotted: its "
        "limit. Lower is better.",
        label="heap in use, GiB",
        field="heap_used_bytes",
        unit=GIB,
        limit=max((size for size in sizes if size), default=None),
    )


def cpu_over_time(runs: Runs, palette: Palette) -> Plot | None:
    """Plot the cores in use."""
    return _over_time(
        runs,
        palette,
        key="cpu",
        title=f"CPU over time, {runs.largest} queries",
        caption="Cores in use, mean of the repeats (band: lowest to highest). Lower is better at "
        "equal throughput.",
        label="cores in use",
        field="cpu_cores",
    )


def _by_policy(
    runs: Runs,
    palette: Palette,
    *,
    key: str,
    title: str,
    caption: str,
    label: str,
    figure: Callable[[Run], float | None],
    form: str,
) -> Plot | None:
    """Plot bars, or lines against the number of queries if there are several."""
    series: dict[str, dict[float, Interval]] = {}
    for policy in runs.policies:
        for count in runs.counts:
            if values := runs.figures(policy, count, figure):
                series.setdefault(policy, {})[count] = mean_interval(values)
    counts = {count for points in series.values() for count in points}
    if not counts:
        return None
    if len(counts) > 1:
        title = f"{title} against number of queries"
        places = sorted(counts)
        return lines_plot(key, title, caption, palette, series, x="queries", y=label, ticks=places)
    bars = {policy: next(iter(points.values())) for policy, points in series.items()}
    return bars_plot(key, title, caption, palette, bars, x=label, form=form)


def _over_time(
    runs: Runs,
    palette: Palette,
    *,
    key: str,
    title: str,
    caption: str,
    label: str,
    field: str,
    unit: float = 1.0,
    limit: float | None = None,
) -> Plot | None:
    curves = {
        policy: [_curve(run, field) for run in runs.of(policy, runs.largest)]
        for policy in runs.policies
    }
    curves = {policy: [c for c in found if len(c)] for policy, found in curves.items()}
    curves = {policy: found for policy, found in curves.items() if found}
    if not curves:
        return None
    last = max(float(curve[:, 0].max()) for found in curves.values() for curve in found)
    edges = np.linspace(0, max(last, 1e-9), POINTS + 1)

    def paint(axes: Axes) -> None:
        for policy, found in curves.items():
            look = palette[policy]
            binned = np.array([_binned(curve, edges) for curve in found]) / unit
            seen = np.isfinite(binned).any(axis=0)
            times, binned = (edges[:-1] + edges[1:])[seen] / 2, binned[:, seen]
            (line,) = axes.plot(times, np.nanmean(binned, axis=0), color=look.colour)
            if look.dash:
                line.set_dashes(look.dash)
            if len(found) > 1:
                low, high = np.nanmin(binned, axis=0), np.nanmax(binned, axis=0)
                axes.fill_between(times, low, high, color=look.colour, alpha=0.15, linewidth=0)
        if limit is not None:
            axes.axhline(limit / unit, color=INK, linewidth=1.0, linestyle=":")
        from_zero(axes)

    legend = palette.legend(curves)
    return plot(key, title, caption, paint, x="time, s", y=label, legend=legend)


def _curve(run: Run, field: str) -> Array:
    """Return rows of time and value."""
    found = [(number(sample.get("t_s")), number(sample.get(field))) for sample in run.samples]
    rows = [pair for pair in found if None not in pair and (pair[0] or 0.0) >= 0]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def _binned(curve: Array, edges: Array) -> Array:
    """Return means of a curve between the edges; ``nan`` where it has no value."""
    places = np.clip(np.searchsorted(edges, curve[:, 0], "right") - 1, 0, len(edges) - 2)
    sums = np.bincount(places, weights=curve[:, 1], minlength=len(edges) - 1)
    counts = np.bincount(places, minlength=len(edges) - 1)
    means = np.full(len(sums), math.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
