"""Runs a query over a real broker and estimates the rate of its topic from what it reports."""

import json

from slackwater.core.clock import RealClock, sleep_until
from slackwater.core.errors import EngineError
from slackwater.engines.spark.progress import backlog_rows, instant_s
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.shedding.meter import QualityMeter
from slackwater.traffic import parse_rate
from slackwater_bench.kafka_broker import connector_jars
from slackwater_bench.kafka_traffic import kafka_traffic
from slackwater_bench.quality.rate import FALLS_BEHIND, Look, RateTrial, judged
from slackwater_bench.trial import Result
from slackwater_bench.workloads.ysb import Ysb

TOPIC = "events"
AHEAD_S = 15.0  # in which the query starts
EVERY_S = 1.0
SHARE = 0.5  # of what comes is read by a query that falls behind
_KEPT = "spark.sql.streaming.numRecentProgressUpdates"


def run(trial: RateTrial) -> Result:
    """Let the query run and compare the estimates with the truth."""
    conf = {"spark.jars": ",".join(connector_jars()), _KEPT: "100000"}
    rate, clock = parse_rate(trial.rate), RealClock()
    with kafka_traffic() as topics:
        spark = session("slackwater-bench", "local[2]", conf=conf)
        spark.sparkContext.setLogLevel("ERROR")
        start_s = float(int(clock.now() + AHEAD_S))
        feed = Ysb(traffic=trial.traffic(start_s)).feed_options()
        topics.start({TOPIC: feed})
        limit = {}
        if trial.arm == FALLS_BEHIND:
            mean = float(rate.count(trial.seconds)) / trial.seconds
            limit["maxOffsetsPerTrigger"] = f"{max(1, round(SHARE * mean * EVERY_S))}"
        rows = topics.events(spark, TOPIC, feed, **limit)
        writer = rows.writeStream.format("noop").trigger(processingTime=f"{EVERY_S:g} seconds")
        query = writer.start()
        sleep_until(start_s + trial.seconds, clock)
        reports = [json.loads(progress.json) for progress in query.recentProgress]
        if not query.isActive:
            raise EngineError(str(query.exception()))
        query.stop()
        late_s = topics.stop()
    meter, lag = QualityMeter(), 0.0
    looks: list[Look] = []
    for progress in reports:
        meter.take(progress, None)
        at_s = instant_s(progress["timestamp"]) - start_s
        if meter.rate is not None and at_s > 0:
            looks.append((at_s, meter.rate))
        lag = max(lag, backlog_rows(progress) or 0.0)
    return {
        "errors": judged(looks, rate, trial.seconds),
        "largest_lag_rows": lag,
        "late_s": late_s,
        "looks": [(round(at_s, 3), round(found, 1)) for at_s, found in looks],
    }
