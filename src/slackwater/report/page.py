"""The page of a report: title, table, plots, settings; nothing loaded from elsewhere."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from slackwater.core.errors import SlackwaterError
from slackwater.report import estimators, latency_plots, resource_plots
from slackwater.report.drawing import Plot
from slackwater.report.palette import Palette, swatch
from slackwater.report.runs import Run, Runs, mapping, number
from slackwater.report.table import table
from slackwater.statistics.intervals import RUNS_ENOUGH

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

LIGHT = "#ffffff"
DARK = "#14171a"

STYLESHEET = f"""
:root {{ color-scheme: light dark; --back: {LIGHT}; --ink: #1d2126; --faint: #5c6570;
  --line: #d9dde2; --bad: #b3261e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --back: {DARK}; --ink: #e4e7ea; --faint: #9aa4af; --line: #343a41; --bad: #ff8a80; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--back);
  color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; margin: .5rem 0; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .5rem; }}
p {{ max-width: 46rem; }}
.notes {{ border-left: .25rem solid var(--bad); padding: .1rem 1rem; }}
.notes ul {{ padding-left: 1rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }}
th, td {{ border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right;
  white-space: nowrap; vertical-align: top; }}
thead th {{ white-space: normal; vertical-align: bottom; }}
tbody th {{ text-align: left; position: sticky; left: 0; background: var(--back); }}
td small {{ display: block; color: var(--faint); }}
strong {{ color: var(--bad); }}
.plots {{ display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }}
figure {{ margin: 0; min-width: 0; }}
figure h3 {{ font-size: 1rem; margin: 0 0 .3rem; }}
figure > svg {{ display: block; width: 100%; height: auto; max-width: 34rem; }}
figure > svg * {{ stroke-linejoin: round; }}
figure > svg text {{ font-family: system-ui, sans-serif !important; }}
figcaption {{ font-size: .85rem; color: var(--faint); max-width: 34rem; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .1rem 1rem; list-style: none; margin: .3rem 0;
  padding: 0; font-size: .85rem; }}
.legend li {{ overflow-wrap: anywhere; }}
.swatch {{ width: 1.75rem; height: .5rem; vertical-align: middle; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; }}
dt {{ color: var(--faint); }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
""".strip()


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
    """Return the page as text."""
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
    """Make a page of its parts; those that are empty are left out."""
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
    rows = estimators.estimator_rows(result)
    found = [build(runs, palette) for build in PLOTS]
    found += [estimators.coverage(rows), estimators.width(rows)]
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
    """Write a setting as a reader does.

    >>> _plain("uniform:0:300ms"), _plain(None), _plain([1, 2]), _plain(("fcfs", "klink"))
    ('uniform:0:300ms', 'none', '1, 2', 'fcfs, klink')
    """
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value, default=str)


def notes(runs: Runs) -> list[str]:
    """Return sentences, most serious first.

    Parameters
    ----------
    runs
        Of the result.

    >>> raw = {"policy": "a", "windows": {"expected": 9, "emitted": 7, "wrong": 0}}
    >>> notes(Runs({"queries": 2, "runs": [raw | {"latencies_s": [1.0] * 7}]}))[0]
    'a, 2 queries: 2 of 9 windows never came; its latencies look better than they are.'
    """
    if not runs.every:
        return ["The result holds no run."]
    found = []
    few = False
    for count in runs.counts:
        for policy in runs.policies:
            mine = runs.of(policy, count)
            found += [f"{policy}, {count} queries: {text}" for text in _troubles(mine)]
            few |= 0 < len(mine) < RUNS_ENOUGH
    if few:
        found.append(
            "Where a policy has fewer than three repeats, intervals come from stretches of its "
            "runs and do not show how much repeats differ."
        )
    return found


def _troubles(runs: list[Run]) -> list[str]:
    found = []
    if wrong := sum(run.wrong or 0 for run in runs):
        found.append(f"{wrong:.0f} windows differ from the ground truth.")
    expected = sum(run.expected or 0 for run in runs)
    emitted = sum(run.emitted or 0 for run in runs if run.expected is not None)
    if emitted < expected:
        found.append(
            f"{expected - emitted:.0f} of {expected:.0f} windows never came; its latencies look "
            "better than they are."
        )
    if late := sum(not run.drained for run in runs):
        found.append(f"{late} of {len(runs)} runs still had windows open at the time limit.")
    if empty := sum(not len(run.latencies_s) for run in runs):
        found.append(f"{empty} of {len(runs)} runs have no latencies.")
    return found
