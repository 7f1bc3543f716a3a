"""Compares samplers: each once for every workload, setting and rate in every repeat."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from slackwater.core.errors import UsageError
from slackwater.report.result import BenchResult
from slackwater_bench.aion.trial import SETTINGS, AionTrial
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.trial import Result
from slackwater_bench.workloads.catalog import workload_with_options


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What is compared with what."""

    workloads: tuple[str, ...] = option(
        ("ysb:campaigns=10",), "Of ysb (ysb:campaigns=10), nyc-taxi, kmeans, payments; commas."
    )
    settings: tuple[str, ...] = option(
        ("EG",), "CC, GG, EC, EG, or delays/gaps such as uniform:0:1s/gamma:2."
    )
    samplers: tuple[str, ...] = option(
        ("k-slack", "aq-k-slack", "aion-minus", "aion"),
        "Comma-separated; k-slack is no sampling, and waits for all rows.",
    )
    rates: tuple[str, ...] = option(
        ("1000",), "Events/s of each query; several: 5000,25000.", flags="--rate"
    )
    repeat: int = option(1, "Rounds; arms alternate.", least=1)


def plan(base: AionTrial, compared: Compared) -> Iterator[Step]:
    """Yield all trials; the order of the samplers alternates."""
    workloads = {text: workload_with_options(text) for text in compared.workloads}
    settings = {name: _setting(name) for name in compared.settings}
    for repeat, samplers in turns(compared.samplers, compared.repeat):
        seeded = replace(base, seed=base.seed + repeat)
        for text, (workload, options) in workloads.items():
            for setting, (delays, gaps) in settings.items():
                for rate in compared.rates:
                    same: dict[str, Any] = {"workload": workload, "options": options, "rate": rate}
                    for sampler in samplers:
                        trial = replace(seeded, sampler=sampler, delays=delays, gaps=gaps, **same)
                        line = ", ".join((text, setting, rate, sampler))
                        keys = {"workload": text, "setting": setting, "rate": rate}
                        yield Step(trial, keys | {"sampler": sampler, "repeat": repeat}, line)


def compare(
    base: AionTrial,
    compared: Compared,
    journal: Journal | None = None,
    show: Show = lambda line: None,
    run: Callable[[AionTrial], Result] | None = None,
) -> BenchResult:
    """Run all trials; one that fails is noted."""
    steps = list(plan(base, compared))
    comparison = Comparison({"benchmark": "aion"}, journal, show, run)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return comparison.result


def _setting(name: str) -> tuple[str, str]:
    """Return delays and gaps of a named setting, or of one written out with a slash."""
    if "/" in name:
        delays, _, gaps = name.partition("/")
        return delays, gaps
    if name not in SETTINGS:
        raise UsageError(f"unknown setting {name!r}; known: {', '.join(SETTINGS)}")
    return SETTINGS[name]
