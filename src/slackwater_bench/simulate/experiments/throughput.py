"""Latency against throughput."""

from slackwater.report.result import Findings, Panel
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    Row,
    base_trial,
    panel,
    rows,
    run_all,
    streams,
    trials,
)
from slackwater_bench.simulate.settings import Settings

LOADS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1)


class Throughput(Experiment):
    """Rates from half to more than the engine can do: what latency each throughput costs."""

    name = "throughput"
    title = "Latency against throughput"
    about = "The same queries at rising rates; also memory and CPU at each (Klink's figures 9a, b)."
    columns = (
        "workload delays policy load events_per_s mean_s p99_s memory_bytes busy_cores collecting"
    )

    def _run(self, settings: Settings, show: Show) -> Findings:
        done = run_all(
            trials(
                base_trial(settings),
                settings.repeat,
                load=LOADS,
                policy=settings.policies,
                **streams(settings),
            ),
            show,
        )
        found = rows(done)
        several = len({(t.workload, t.delays) for t, _ in done}) > 1
        panels = []
        for workload, delays in dict.fromkeys((t.workload, t.delays) for t, _ in done):
            mine = [row for row in found if (row["workload"], row["delays"]) == (workload, delays)]
            panels += _panels(mine, f", {workload}, {delays}" if several else "")
        return {"rows": found, "panels": panels}


def _panels(found: list[Row], where: str) -> list[Panel]:
    panels = []
    for key, label, scale in (
        ("mean_s", "mean latency, s", 1.0),
        ("memory_bytes", "memory, GB", 1e-9),
        ("busy_cores", "cores at work", 1.0),
    ):
        series: dict[str, dict[float, float]] = {}
        for row in found:
            if row[key] is not None:
                place = row["events_per_s"] / 1e6
                series.setdefault(row["policy"], {})[place] = row[key] * scale
        panels.append(
            panel(
                f"{label.split(',')[0].capitalize()} against throughput{where}",
                "Each point is a rate, from half of the usual one to a tenth more.",
                "million events/s through operators",
                label,
                series,
            )
        )
    return panels
