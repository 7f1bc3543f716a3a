"""The table of a report: a row for each policy and number of queries."""

import math
from collections.abc import Callable, Iterable
from html import escape

import numpy as np

from slackwater.report.palette import Palette, swatch
from slackwater.report.runs import Run, Runs
from slackwater.statistics.intervals import (
    Array,
    Interval,
    mean_interval,
    quantile_interval,
    ratio_interval,
)

COLUMNS = (
    "policy", "mean s", "mean less watermark delay", "p50", "p90", "p99", "max", "mean ÷ first",
    "p99 ÷ first", "windows", "wrong", "events/s", "batches", "CPU s", "controller CPU s",
)  # fmt: skip

SMALL_BELOW = 10.0  # figures under it show two decimals


def table(runs: Runs, palette: Palette) -> str:
    """Return the table as HTML.

    Parameters
    ----------
    runs
        Of the result; repeats of a policy are pooled.
    palette
        Gives each policy the colour it has in the plots.
    """
    several = len(runs.counts) > 1
    columns = (("queries",) if several else ()) + COLUMNS
    body = []
    for count in runs.counts:
        policies = [policy for policy in runs.policies if runs.of(policy, count)]
        for policy in policies:
            cells = [f"<td>{count}</td>"] if several else []
            name = f'<th scope="row">{swatch(palette[policy])} {escape(policy)}</th>'
            cells += [name, *_cells(runs, policy, policies[0], count)]
            body.append("".join(cells))
    return grid(columns, body)


def grid(columns: Iterable[str], rows: Iterable[str]) -> str:
    """Make a table of its headings and of rows of ready cells.

    >>> grid(["a < b"], ["<td>1</td>"]).splitlines()[1]
    '<thead><tr><th scope="col">a &lt; b</th></tr></thead>'
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _cells(runs: Runs, policy: str, first: str, count: int) -> list[str]:
    mine, reference = runs.of(policy, count), runs.of(first, count)
    values = runs.latencies(policy, count)
    pooled = np.concatenate(values) if values else np.empty(0)
    less = [run.latencies_s - run.watermark_delay_s for run in mine]
    texts = [_interval(mean_interval(values)), _figure(_mean(less))]
    texts += [_figure(float(np.quantile(pooled, q)) if values else None) for q in (0.5, 0.9)]
    texts.append(_interval(quantile_interval(values, 0.99)))
    texts.append(_figure(float(pooled.max()) if values else None))
    for level in (None, 0.99):
        same = policy == first
        texts.append("1" if same and values else _interval(_ratio(mine, reference, level)))
    texts += [_windows(mine), _wrong(mine)]
    for name in ("throughput_eps", "batches", "cpu_s", "controller_cpu_s"):
        found = [value for run in mine if (value := getattr(run, name)) is not None]
        texts.append(_figure(sum(found) / len(found) if found else None))
    return [f"<td>{text}</td>" for text in texts]


def _mean(runs: list[Array]) -> float | None:
    values = np.concatenate(runs) if runs else np.empty(0)
    return float(values.mean()) if len(values) else None


def _ratio(mine: list[Run], theirs: list[Run], level: float | None) -> Interval:
    """Compare runs by repeat; a repeat that one side lacks is left out."""
    others = {run.repeat: run.latencies_s for run in theirs}
    pairs = [(run.latencies_s, others[run.repeat]) for run in mine if run.repeat in others]
    return ratio_interval([a for a, _ in pairs], [b for _, b in pairs], level)


def _total(runs: list[Run], figure: Callable[[Run], float | None]) -> float | None:
    found = [value for run in runs if (value := figure(run)) is not None]
    return sum(found) if found else None


def _windows(runs: list[Run]) -> str:
    emitted, expected = _total(runs, lambda r: r.emitted), _total(runs, lambda r: r.expected)
    if emitted is None or expected is None:
        return ""
    text = f"{emitted:.0f}/{expected:.0f}"
    return f"<strong>{text}</strong>" if emitted < expected else text


def _wrong(runs: list[Run]) -> str:
    wrong = _total(runs, lambda run: run.wrong)
    if wrong is None:
        return ""
    return f"<strong>{wrong:.0f}</strong>" if wrong else "0"


def _figure(value: float | None) -> str:
    """Write two decimals of small figures.

    >>> _figure(1.234), _figure(12345.6), _figure(None)
    ('1.23', '12,345.6', '')
    """
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.2f}" if abs(value) < SMALL_BELOW else f"{value:,.1f}".removesuffix(".0")


def _interval(interval: Interval) -> str:
    text = _figure(interval.estimate)
    if not interval.known:
        return text
    return f"{text} <small>{_figure(interval.low)}…{_figure(interval.high)}</small>"
