"""Accuracy of the estimators of the sweeping watermark."""

from slackwater.report.result import Findings
from slackwater.statistics.intervals import Interval
from slackwater_bench.comparison import Show
from slackwater_bench.klink.estimators import measure
from slackwater_bench.simulate.experiment import Experiment, panel
from slackwater_bench.simulate.settings import Settings


class Estimators(Experiment):
    """Klink's figure 9c: how often the watermark came within its interval."""

    name = "estimators"
    title = "Accuracy of estimators"
    about = "Share of sweeping watermarks within the predicted interval, for f = 90, 95 and 99 %."
    columns = "delays estimator confidence coverage coverage_low coverage_high width_s"
    uses = "delays seed"
    usual = Settings(delays=("uniform:0:300ms", "zipf:0.99:300ms"))

    def _run(self, settings: Settings, show: Show) -> Findings:
        delays = list(settings.delays)
        found = measure(2000, 1000.0, delays, (0.9, 0.95, 0.99), settings.seed, show)
        panels = []
        for setting in dict.fromkeys(row["delays"] for row in found["rows"]):
            series: dict[str, dict[float, Interval]] = {}
            for row in found["rows"]:
                if row["delays"] == setting:
                    shares = (row[key] for key in ("coverage", "coverage_low", "coverage_high"))
                    place = 100 * row["confidence"]
                    points = series.setdefault(row["estimator"], {})
                    points[place] = Interval(*(100 * share for share in shares))
            panels.append(
                panel(
                    f"Coverage, {setting}",
                    "Against the confidence asked for; equal is best.",
                    "confidence, %",
                    "coverage, %",
                    series,
                )
            )
        return {"rows": found["rows"], "panels": panels}
