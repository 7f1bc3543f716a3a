"""What gates and listeners report, read in one call."""

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.gates.reports import Reports

pytestmark = pytest.mark.spark


def test_what_was_put_off_comes_behind_what_is_urgent(spark: SparkSession) -> None:
    handles = Handles(spark)
    reports = Reports(handles)

    def report(how: JavaObject, line: str) -> None:
        handles.call(handles.insert(how, 0, line))

    assert reports.next() == []
    report(reports.put_off(), "{progress}")
    report(reports.offer(), "arrive a ")
    report(reports.offer(), "done b ")
    assert reports.next() == ["arrive a ", "done b ", "{progress}"]
    report(reports.put_off(), "{idle}")
    report(reports.put_off(wake=True), "{terminated}")
    assert reports.next() == ["{idle}", "{terminated}"]
    report(reports.put_off(), "{progress}")
    assert reports.next() == ["{progress}"], "nothing is put off for long"
