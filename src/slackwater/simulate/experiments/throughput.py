"""Latency against throughput."""

from typing import Any

from slackwater.simulate.experiment import (
    ALL_POLICIES,
    Experiment,
    Options,
    Show,
    base_trial,
    panel,
    rows,
    run_all,
    streams,
    trials,
)

LOADS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1)


class Throughput(Experiment):
    """Rates from half to more than the engine can do: what latency each throughput costs."""

    name = "throughput"
    title = "Latency against throughput"
    about = "The same queries at rising rates; also memory and CPU at each (Klink's figures 9a, b)."
    columns = "policy load events_per_s mean_s p99_s memory_bytes busy_cores collecting"

    def run(self, options: Options, show: Show) -> dict[str, Any]:
        done = run_all(
            trials(
                base_trial(options, options.seconds or 300.0),
                options.repeat,
                load=LOADS,
                policy=options.policies or ALL_POLICIES,
                queries=(options.queries or (80,))[:1],
                **streams(options),
            ),
            show,
        )
        found = rows(done)
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
            title = label.split(",")[0].capitalize()
            panels.append(
                panel(
                    f"{title} against throughput",
                    "Each point is a rate, from half of the usual one to a tenth more.",
                    "million events/s through operators",
                    label,
                    series,
                )
            )
        return {"rows": found, "panels": panels}
