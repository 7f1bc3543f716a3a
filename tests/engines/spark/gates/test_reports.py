"""What gates and listeners report, read in one call."""

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.clock import ClockGate
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


def test_who_was_let_in_patiently_comes_back_along_with_others(spark: SparkSession) -> None:
    handles = Handles(spark)
    reports = Reports(handles)
    patient, other = (ClockGate(handles, name, name, reports) for name in ("patient", "other"))

    def come_back() -> list[str]:
        for gate in (patient, other):
            handles.call(gate._report("arrive"))
        return reports.next()

    assert come_back() == ["arrive patient ", "arrive other "]
    patient.grant(patient=True)
    assert come_back() == ["arrive other ", "arrive patient "]
    handles.call(patient._report("arrive"))
    assert reports.next() == ["arrive patient "], "nothing is put off for long"
    patient.grant()
    assert come_back() == ["arrive patient ", "arrive other "]
