"""What Klink's parameters do."""

from dataclasses import replace

from slackwater.report.result import Findings
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    base_trial,
    latency_series,
    panel,
    rows,
    run_all,
    trials,
)
from slackwater_bench.simulate.settings import Settings
from slackwater_bench.simulate.trial import SimulatedTrial

BOUNDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # b
CYCLES_S = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)  # r
HISTORIES = (25, 50, 100, 200, 400, 800)  # h


class Sensitivity(Experiment):
    """One parameter at a time: memory bound b, cycle r, history h."""

    name = "sensitivity"
    title = "Sensitivity to b, r and h"
    about = "Klink at the largest number of queries with one of its parameters changed."
    columns = "parameter value mean_s p99_s events_per_s memory_bytes windows"
    uses = "queries arrivals seconds repeat cores cold seed"

    def _run(self, settings: Settings, show: Show) -> Findings:
        base = base_trial(settings)
        varied = {
            "b": [replace(base, parameters={"memory_bound": b}) for b in BOUNDS],
            "r": [replace(base, cycle_s=r) for r in CYCLES_S],
            "h": [replace(base, parameters={"history": h}) for h in HISTORIES],
        }
        found, panels = [], []
        for (letter, wanted), label in zip(varied.items(), _LABELS, strict=True):
            seeded = [each for trial in wanted for each in trials(trial, settings.repeat)]
            done = run_all(seeded, lambda line, letter=letter: show(f"{letter}: {line}"))  # type: ignore[misc]
            series = latency_series(done, lambda _: "klink", _place)
            panels.append(panel(f"Sensitivity to {letter}", "", label, "mean latency, s", series))
            found += [
                row | {"parameter": letter, "value": _place(trial)}
                for row, (trial, _) in zip(rows(done), done, strict=True)
            ]
        return {"rows": found, "panels": panels}


_LABELS = ("memory bound b", "cycle r, s", "history h, epochs")


def _place(trial: SimulatedTrial) -> float:
    values = list(trial.parameters.values())
    return float(values[0]) if values else trial.cycle_s
