"""The page of a report: title, table, plots, settings; nothing loaded from elsewhere."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from slackwater.core.errors import SlackwaterError
from slackwater.report import estimator_plots, latency_plots, resource_plots
from slackwater.report.estimator import estimator_rows
from slackwater.report.notes import notes
from slackwater.report.palette import Palette
from slackwater.report.plot import Plot
from slackwater.report.reading import mapping, number
from slackwater.report.runs import Runs
from slackwater.report.stylesheet import STYLESHEET
from slackwater.report.swatch import swatch
from slackwater.report.table import table

PLOTS = (
    latency_plots.mean_against_queries,
    latency_plots.latency_bars,
    latency_plots.latency_cdf,
    latency_plots.slowdown_bars,
    resource_plots.throughput,
    resource_plots.memory_over_time,
    resource_plots.cpu_over_time,
    resource_plots.overhead,
)


def write_report(result: dict[str, Any], folder: Path) -> Path:
    """Write ``index.html`` and return its path.

    Parameters
    ----------
    result
        What ``slackwater bench --json`` writes (docs/bench-json.md). Plots whose data is missing
        are left out.
    folder
        Made if it does not exist; a page that is there is replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report({"workload": "ysb", "runs": []}, Path(folder)).name
    'index.html'
    """
    return write_page(page(result), folder)


def write_page(text: str, folder: Path) -> Path:
    """Put a page into a folder."""
    path = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise SlackwaterError(
            f"cannot write the report to {path}: {reason}; name another folder"
        ) from error
    return path


def page(result: dict[str, Any]) -> str:
    """The page as text."""
    runs = Runs(result)
    palette = Palette(runs.policies)
    return assemble(
        title=f"Benchmark {result['workload']}" if result.get("workload") else "Benchmark",
        lines=_introduction(result, runs),
        remarks=notes(runs),
        figures=table(runs, palette) if runs.every else "",
        plots=_plots(result, runs, palette),
        settings=mapping(result.get("settings")),
    )


def assemble(
    *,
    title: str,
    lines: Sequence[str],
    plots: Sequence[Plot],
    settings: dict[str, Any],
    remarks: Sequence[str] = (),
    figures: str = "",
) -> str:
    """A page from its parts; those that are empty are left out."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in lines),
        _notes(remarks),
    ]
    if figures:
        parts += ["<h2>Figures</h2>", f'<div class="scroll">{figures}</div>']
    if plots:
        shown = "\n".join(_figure(plot) for plot in plots)
        parts += ["<h2>Plots</h2>", f'<div class="plots">\n{shown}\n</div>']
    if settings:
        parts += ["<h2>Settings</h2>", _settings(settings)]
    return _document(title, "\n".join(part for part in parts if part))


def _plots(result: dict[str, Any], runs: Runs, palette: Palette) -> list[Plot]:
    rows = estimator_rows(result)
    found = [build(runs, palette) for build in PLOTS]
    found += [estimator_plots.coverage(rows), estimator_plots.width(rows)]
    return [plot for plot in found if plot is not None]


def _document(title: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{STYLESHEET}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _introduction(result: dict[str, Any], runs: Runs) -> list[str]:
    if not runs.every:
        return []
    counts = ", ".join(map(str, runs.counts))
    rate, window_s = result.get("rate"), number(result.get("window_s"))
    load = [f"{counts} queries"]
    load += [f"{rate} events/s each"] if rate is not None else []
    load += [f"windows of {window_s:g} s"] if window_s is not None else []
    seconds = number(mapping(result.get("settings")).get("seconds"))
    load += [f"{seconds:g} s measured"] if seconds is not None else []
    repeats = len({run.repeat for run in runs.every})
    load.append(f"{repeats} {'repeat' if repeats == 1 else 'repeats'} of each policy")
    delay_s = max(run.watermark_delay_s for run in runs.every)
    unavoidable = (
        f" Of it {delay_s:g} s is the watermark's configured delay, which no scheduler can avoid."
    )
    return [
        "; ".join(load) + ".",
        "Latency is the time from a window's end in event time to its result complete at the sink."
        + (unavoidable if delay_s else "")
        + " Small figures are 95 % confidence intervals.",
    ]


def _notes(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<aside class="notes"><ul>{items}</ul></aside>'


def _figure(plot: Plot) -> str:
    names = "".join(f"<li>{swatch(look)} {escape(name)}</li>" for name, look in plot.legend)
    legend = f'<ul class="legend">{names}</ul>\n' if names else ""
    label = escape(plot.title, quote=True)
    svg = plot.svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return (
        f'<figure id="{plot.key}">\n<h3>{escape(plot.title)}</h3>\n{svg}\n{legend}'
        f"<figcaption>{escape(plot.caption)}</figcaption>\n</figure>"
    )


def _settings(settings: dict[str, Any]) -> str:
    rows = "\n".join(
        f"<dt>{escape(str(key))}</dt><dd>{escape(_plain(value))}</dd>"
        for key, value in settings.items()
    )
    return f"<dl>\n{rows}\n</dl>"


def _plain(value: Any) -> str:
    """A setting as a reader writes it.

    >>> _plain("uniform:0:300ms"), _plain(None), _plain([1, 2]), _plain(("fcfs", "klink"))
    ('uniform:0:300ms', 'none', '1, 2', 'fcfs, klink')
    """
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value, default=str)
