"""What the page's server tells of a fleet, over a real controller process."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from slackwater.cli.running import running
from slackwater.engines.spark.control.process import ControllerProcess
from slackwater.engines.spark.control.service import ControllerSettings, ControllerThread
from slackwater.ipc.client import Link
from slackwater.ipc.messages import Accuracy, Arrive, Gone, Note, Notes
from slackwater.ipc.unix_socket import socket_path
from slackwater.operations.dashboard.command import look
from slackwater.operations.dashboard.metrics import FleetMetrics
from slackwater.operations.dashboard.server import Dashboard
from slackwater.operations.dashboard.watch import Watch
from slackwater.operations.middleware.control import Control
from tests.operations.dashboard.asking import ask, events
from tests.operations.dashboard.conftest import TOKEN
from tests.operations.dashboard.pretence import PretendFleet
from tests.root import ROOT
from tests.waiting import eventually


def queries(page: Dashboard) -> dict[str, dict[str, Any]]:
    return {query["name"]: query for query in ask(page, "/status").json["queries"]}


def test_every_query_with_its_state_and_figures(fleet: PretendFleet, page: Dashboard) -> None:
    fleet.note(**{"query-1": Note(accuracy=Accuracy(0.2, 0.9, 0.8, 0.75))})
    eventually(lambda: all(len(q["latencies_s"]) > 2 for q in queries(page).values()))
    found = queries(page)
    assert sorted(found) == ["query-0", "query-1", "query-2"]
    for query in found.values():
        assert query["state"] in ("held", "admitted", "running", "emitting")
        assert query["sweep_low_s"] <= query["sweep_s"] <= query["sweep_high_s"]
        assert isinstance(query["slack_s"], float)
        assert (query["lag_rows"], query["target_s"]) == (7.0, 0.5)
        assert 0 <= query["lag_s"] < 60
        assert query["app_name"] == "pretence"
        assert min(query["latencies_s"]) > 0
    assert found["query-1"]["accuracy"]["delivered"] == 0.75
    assert found["query-1"]["shed_rate"] == 0.25
    assert found["query-0"]["priority"] == 1.0


def test_queries_that_ended_or_did_not_begin_are_shown(
    fleet: PretendFleet, page: Dashboard
) -> None:
    fleet.note(broken=Note(state="failed", error="no such table"))
    eventually(lambda: "broken" in queries(page))
    assert (queries(page)["broken"]["state"], queries(page)["broken"]["error"]) == (
        "failed",
        "no such table",
    )


def test_late_rows_and_reasons_for_two_batches_are_shown(
    fleet: PretendFleet, page: Dashboard, path: Path
) -> None:
    fleet.note(**{"query-1": Note(why_two_batches="rows are filtered before the watermark")})
    eventually(lambda: all(len(q["latencies_s"]) > 2 for q in queries(page).values()))
    found = queries(page)
    for query in found.values():
        assert query["numRowsDroppedByWatermark"] == query["batches"] > 0  # one in every batch
    assert found["query-1"]["why_two_batches"] == "rows are filtered before the watermark"
    assert found["query-0"]["why_two_batches"] is None
    families = {f.name: f for f in text_string_to_metric_families(ask(page, "/metrics").text)}
    assert len(families["slackwater_numRowsDroppedByWatermark"].samples) == 3


@pytest.mark.parametrize("command", ["status", "explain"])
def test_the_command_line_says_why_a_window_takes_two_batches(
    command: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(path.parent))
    monkeypatch.setenv("COLUMNS", "200")
    controller = ControllerThread(ControllerSettings(str(socket_path("ads")), "klink", slots=2))
    fleet = PretendFleet(socket_path("ads"))
    reason = "rows are filtered before the watermark"
    try:
        fleet.note(**{f"query-{n}": Note(why_two_batches=reason) for n in (0, 2)})
        eventually(lambda: len(look([socket_path("ads")]).queries) == 3)
        shown = CliRunner().invoke(running, [command]).output
    finally:
        fleet.close()
        controller.close()
    assert f"query-0, query-2: two batches a window, because {reason}" in shown


def test_the_command_line_says_why_a_query_waits_now(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(path.parent))
    monkeypatch.setenv("COLUMNS", "250")
    controller = ControllerThread(ControllerSettings(str(socket_path("ads")), "klink", slots=2))
    fleet = PretendFleet(socket_path("ads"), queries=1, window_s=600.0)

    def held() -> str | None:
        return next((q.waits for q in look([socket_path("ads")]).queries), None)

    try:
        eventually(lambda: "(half of its longest wait)" in (held() or ""))
        shown = CliRunner().invoke(running, ["status"]).output
        explained = CliRunner().invoke(running, ["explain", "--query", "query-0"]).output
        wrong = CliRunner().invoke(running, ["explain", "--query", "qery-0"]).exception
    finally:
        fleet.close()
        controller.close()
    assert "held until" in shown
    assert "query-0 now: " in explained
    assert str(wrong) == "the fleet has no query named 'qery-0'; did you mean 'query-0'?"
    assert getattr(wrong, "exit_status", None) == 2


def test_metrics_as_prometheus_reads_them(fleet: PretendFleet, page: Dashboard) -> None:
    eventually(lambda: all(len(q["latencies_s"]) > 2 for q in queries(page).values()))
    answer = ask(page, "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {f.name: f for f in text_string_to_metric_families(answer.text)}
    for name in ("inputRowsPerSecond", "processedRowsPerSecond", "batchDuration"):  # Spark's names
        assert len(families[f"slackwater_{name}"].samples) == 3
    for name in ("watermark_gap_seconds", "lag_rows", "lag_seconds", "slack_seconds", "batches"):
        for sample in families[f"slackwater_{name}"].samples:
            assert set(sample.labels) == {"query_name", "app_name"}
            assert sample.labels["app_name"] == "pretence"
            assert sample.labels["query_name"].startswith("query-")
    promises = [families[f"slackwater_promises_{kind}"] for kind in ("kept", "broken")]
    assert all(family.type == "counter" and len(family.samples) == 3 for family in promises)
    assert sum(sample.value for family in promises for sample in family.samples) > 6
    latency = families["slackwater_latency_seconds"]
    assert latency.type == "histogram"
    counts = [s for s in latency.samples if s.name.endswith("_count")]
    assert all(sample.value > 2 for sample in counts)
    assert families["slackwater_controller_up"].samples[0].value == 1.0
    names = {name for f in families.values() for name in (f.name, *(s.name for s in f.samples))}
    assert not any("query-" in name or "pretence" in name for name in names)
    assert all(f.documentation for f in families.values())


def test_events_tell_the_story_so_far_and_then_the_news(
    fleet: PretendFleet, page: Dashboard
) -> None:
    eventually(lambda: len(ask(page, "/decisions").json) > 5)
    stream = events(page)
    assert next(stream)[0] == "hello"
    kinds = [next(stream) for _ in range(6)]
    history = next(data for kind, data in kinds if kind == "happened")
    assert {entry["kind"] for entry in history} == {"decision", "batch"}
    assert sum(kind == "status" for kind, _ in kinds) >= 2
    stream.close()


def test_decisions_have_reasons(fleet: PretendFleet, page: Dashboard) -> None:
    eventually(lambda: len(ask(page, "/decisions").json) >= 5)
    newest = ask(page, "/decisions?last=5").json
    assert len(newest) == 5
    assert newest[0]["at_s"] >= newest[-1]["at_s"]
    assert all(decision["reason"] for decision in newest)
    one = ask(page, "/decisions?query=query-1").json
    assert {decision["query"] for decision in one} == {"query-1"}
    assert ask(page, "/decisions?last=many").status == 400


def test_the_policy_is_switched_and_gates_are_opened(fleet: PretendFleet, page: Dashboard) -> None:
    def state() -> tuple[str, str]:
        status = ask(page, "/status").json["fleets"][0]
        return status["policy"], status["state"]

    def tell(**command: str) -> int:
        return ask(page, "/control", "POST", {"fleet": "ads", **command}, TOKEN).status

    eventually(lambda: state() == ("klink", "holding"))
    assert tell(action="policy", policy="fcfs") == 200
    eventually(lambda: state() == ("fcfs", "holding"))
    assert tell(action="off") == 200
    eventually(lambda: state() == ("fcfs", "open"))
    assert tell(action="on") == 200
    eventually(lambda: state() == ("fcfs", "holding"))
    assert tell(action="pause", query="query-2") == 200
    eventually(lambda: any(c.query == "query-2" for c in fleet.commands))


def test_a_controller_that_comes_back_is_seen_again(
    fleet: PretendFleet, controller: ControllerProcess, page: Dashboard
) -> None:
    eventually(lambda: len(ask(page, "/decisions").json) > 3)
    before = page.watch.log.last
    os.kill(controller.pid, signal.SIGSTOP)
    eventually(lambda: ask(page, "/health").json["fleets"] == {"ads": "silent"})
    assert {query["state"] for query in queries(page).values()} == {"unknown"}
    os.kill(controller.pid, signal.SIGKILL)
    eventually(lambda: ask(page, "/health").json["fleets"] == {"ads": "holding"})
    eventually(lambda: page.watch.log.last > before + 5)


def test_nobody_is_asked_while_nobody_looks(fleet: PretendFleet, page: Dashboard) -> None:
    ask(page, "/status")
    page.watch._wanted_until_s = 0.0  # as if it were long ago
    eventually(lambda: not page.watch._wanted.is_set())
    asleep = page.watch._picture.number
    eventually(lambda: ask(page, "/health").status == 200 and page.watch._picture.number > asleep)


def test_a_fleet_that_is_not_there_yet_is_silent(page: Dashboard) -> None:
    assert ask(page, "/health").json == {"status": "ok", "fleets": {"ads": "silent"}}
    families = list(text_string_to_metric_families(ask(page, "/metrics").text))
    up = next(f for f in families if f.name == "slackwater_controller_up")
    assert up.samples[0].value == 0.0


def test_dashboard_and_alerts_ask_for_metrics_that_exist(
    fleet: PretendFleet, page: Dashboard
) -> None:
    eventually(lambda: all(len(q["latencies_s"]) > 2 for q in queries(page).values()))
    text = ask(page, "/metrics").text
    known = {f.name for f in text_string_to_metric_families(text)}
    known |= {s.name for f in text_string_to_metric_families(text) for s in f.samples}
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = (ROOT / "docs" / "alerts.yaml").read_text()
    for expressions, least in ((" ".join(shown), 16), (alerts, 8)):
        asked = set(re.findall(r"slackwater_\w+", expressions))
        assert len(asked) >= least
        assert asked <= known


def test_workers_of_one_fleet_and_a_middleware(tmp_path: Path) -> None:
    """A query that has moved counts once: where it runs."""
    started = [
        ControllerThread(ControllerSettings(str(tmp_path / f"ads.{name}.sock"), "fcfs"))
        for name in ("left", "right")
    ]
    gates = []
    for name in ("left", "right"):
        gates.append(Link(tmp_path / f"ads.{name}.sock", lambda grant: None, lambda held: None))
        gates[-1].start()
        assert gates[-1].wait_held(20)
    gates[0].send(Notes("ads", notes={"q": Note(state="stopped")}))
    gates[1].send(Notes("ads", notes={"q": Note()}), Arrive("q", 1))
    control = Control(tmp_path / "lachesis.sock", lambda message: {"policies": {}})
    watch = Watch(lambda: sorted(tmp_path.glob("ads.*.sock")), lambda: [control.path])
    try:
        eventually(lambda: len(watch.now().status.queries) == 2)
        status = watch.now().status
        assert [query.worker for query in status.queries] == ["left", "right"]
        assert status.middlewares == ({"name": "lachesis", "policies": {}},)
        text = FleetMetrics(watch).text().decode()
        families = {f.name: f for f in text_string_to_metric_families(text)}
        (sample,) = families["slackwater_query_state"].samples
        assert sample.labels["state"] != "stopped"
        assert len(families["slackwater_controller_up"].samples) == 2
    finally:
        watch.close()
        control.close()
        for each in (*gates, *started):
            each.close()


def test_a_query_keeps_its_place_when_it_is_paused(fleet: PretendFleet, page: Dashboard) -> None:
    eventually(lambda: len(queries(page)) == 3)
    before = list(queries(page))
    fleet.note(**{"query-0": Note(state="paused")})
    fleet._link.send(Gone("query-0"))
    eventually(lambda: queries(page)["query-0"]["state"] == "paused")
    assert list(queries(page)) == before
