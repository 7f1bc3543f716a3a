"""``slackwater bench versus``."""

from slackwater.cli.terminal import console, with_status, write_line
from slackwater_bench import kafka_broker
from slackwater_bench.comparison import refuse_bad_windows
from slackwater_bench.journal import Journal
from slackwater_bench.options import Kept, Resumed
from slackwater_bench.versus.comparison import Compared, measure, table
from slackwater_bench.versus.trial import VersusTrial, require


def versus(
    trial: VersusTrial, compared: Compared, json_file: Kept = None, resume: Resumed = False
) -> None:
    """Compare Klink with Spark's Real-Time Mode and Flink: the same windows, Kafka to Kafka."""
    kafka_broker.require()
    require(compared.arms)
    result = with_status(lambda show: measure(trial, compared, Journal(json_file, resume), show))
    console.print(table(result))
    refuse_bad_windows(result["runs"], "arm", write_line)
