"""How late results are."""

import numpy as np
from matplotlib.axes import Axes

from slackwater.report.drawing import (
    INK,
    Plot,
    bars_height_in,
    bars_plot,
    lines_plot,
    paint_bars,
    plot,
)
from slackwater.report.palette import Palette
from slackwater.report.runs import Runs
from slackwater.statistics.intervals import Interval, mean_interval, quantile_interval

# Finer near the end, where policies differ most.
LEVELS = np.unique(np.concatenate([np.linspace(0, 1, 201), np.linspace(0.98, 1, 41)]))
LOGARITHMIC_FROM = 20.0  # the latest value over the median at which a plain axis hides too much


def mean_against_queries(runs: Runs, palette: Palette) -> Plot | None:
    """Plot mean latency as the fleet grows; nothing if it was measured at one size only."""
    series: dict[str, dict[float, Interval]] = {}
    for policy in runs.policies:
        for count in runs.counts:
            if values := runs.latencies(policy, count):
                series.setdefault(policy, {})[count] = mean_interval(values)
    if len({count for points in series.values() for count in points}) < 2:
        return None

    return lines_plot(
        "mean-latency",
        "Mean latency against number of queries",
        "Mean over all windows with 95 % confidence intervals. Lower and flatter is better.",
        palette,
        series,
        x="queries",
        y="mean latency, s",
        ticks=runs.counts,
    )


def latency_bars(runs: Runs, palette: Palette) -> Plot | None:
    """Plot mean and 99th percentile of each policy at the largest number of queries."""
    found = {policy: runs.latencies(policy, runs.largest) for policy in runs.policies}
    found = {policy: values for policy, values in found.items() if values}
    if not found:
        return None
    means = {policy: mean_interval(values) for policy, values in found.items()}
    tails = {policy: quantile_interval(values, 0.99) for policy, values in found.items()}

    return bars_plot(
        "latency-bars",
        f"Mean and 99th percentile of latency, {runs.largest} queries",
        "Full colour: mean; pale: 99th percentile; 95 % confidence intervals. Shorter is better.",
        palette,
        means,
        tails,
        x="latency, s",
    )


def latency_cdf(runs: Runs, palette: Palette) -> Plot | None:
    """Plot the distribution of latency, windows that never came counted as never done."""
    curves = {}
    for policy in runs.policies:
        values = runs.latencies(policy, runs.largest)
        if not values:
            continue
        pooled = np.concatenate(values)
        expected = sum(run.expected or 0 for run in runs.of(policy, runs.largest))
        share = min(1.0, len(pooled) / expected) if expected else 1.0
        curves[policy] = np.quantile(pooled, LEVELS), share
    if not curves:
        return None
    latest = max(float(values[-1]) for values, _ in curves.values())
    earliest = min(float(values[0]) for values, _ in curves.values())
    median = min(float(np.median(values)) for values, _ in curves.values())

    def paint(axes: Axes) -> None:
        for policy, (values, share) in curves.items():
            look = palette[policy]
            (line,) = axes.plot(values, 100 * share * LEVELS, color=look.colour)
            if look.dash:
                line.set_dashes(look.dash)
        if earliest > 0 and latest > LOGARITHMIC_FROM * median:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("")
        else:
            axes.set_xlim(left=0)
        axes.set_ylim(0, 102)

    return plot(
        "latency-cdf",
        f"Distribution of latency, {runs.largest} queries",
        "Share of windows whose result came within a time. Further left and up is better; a curve "
        "that ends below 100 % lost windows.",
        paint,
        x="latency, s",
        y="windows done, %",
        legend=palette.legend(curves),
    )


def slowdown_bars(runs: Runs, palette: Palette) -> Plot | None:
    """Plot mean slowdown of each policy at the largest number of queries."""
    found = {policy: runs.slowdowns(policy, runs.largest) for policy in runs.policies}
    means = {policy: mean_interval(values) for policy, values in found.items() if values}
    if not means:
        return None

    def paint(axes: Axes) -> None:
        paint_bars(axes, palette, means)
        axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=":")

    return plot(
        "slowdown",
        f"Slowdown, {runs.largest} queries",
        "Latency ÷ the least latency the same window could have had, both without the watermark's "
        "configured delay; mean. Shorter is better; at 1 (dotted) nothing waited.",
        paint,
        x="mean slowdown",
        height_in=bars_height_in(len(means)),
    )
