"""The command line as users type it; wrong input is one clear line and status 2."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PIPELINE = """
def rate(spark):
    return spark.readStream.format("rate").option("rowsPerSecond", 20).load()

def windows(spark):
    from pyspark.sql import functions as F
    marked = rate(spark).withWatermark("timestamp", "500 milliseconds")
    return marked.groupBy(F.window("timestamp", "2 seconds")).count()

def batch(spark):
    return spark.range(3)

def writer(spark):
    return rate(spark).writeStream.format("noop")

def two(spark):
    return rate(spark).union(rate(spark))

def broken(spark):
    raise ValueError("no such table")

def text(spark):
    return "hello"
"""


def slackwater(
    folder: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder)} | (env or {})
    return subprocess.run(
        [sys.executable, "-m", "slackwater.cli", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=200,
        check=False,
    )


def write(folder: Path, toml: str) -> None:
    (folder / "pipeline.py").write_text(PIPELINE)
    (folder / "fleet.toml").write_text(toml)


def query(function: str, name: str = "q") -> str:
    return f"[queries.{name}]\nquery = 'pipeline:{function}'\n"


MISTAKES = {
    "unknown policy": ("policy = 'fcsf'\n" + query("rate"), "Did you mean 'fcfs'?"),
    "no such function": (query("rat"), "pipeline has no 'rat'. Did you mean 'rate'?"),
    "no such module": ("[queries.q]\nquery = 'nowhere:f'\n", "no module named 'nowhere'"),
    "typo in a key": ("polcy = 'fcfs'\n" + query("rate"), "'polcy'; did you mean 'policy'?"),
    "typo in a query": (query("rate") + "priorty = 2\n", "did you mean 'priority'?"),
    "typo in spark": (query("rate") + "[spark]\nmastr = 'x'\n", "did you mean 'master'?"),
    "wrong type": (query("rate") + "priority = 'high'\n", "'queries.q.priority'"),
    "no duration": (query("rate") + "max_wait = 'soon'\n", "no duration; write 2 or '2 seconds'"),
    "negative duration": (query("rate") + "target = '-2s'\n", "'queries.q.target'"),
    "negative priority": (query("rate") + "priority = -1\n", "'queries.q.priority'"),
    "no place": (query("rate") + "format = 'parquet'\n", 'format = "parquet" needs path'),
    "every without runs": (
        query("rate") + "trigger = '2 seconds'\nevery = '10 minutes'\n",
        'every needs trigger = "availableNow" or "once"',
    ),
    "every is no duration": (
        query("rate") + "trigger = 'availableNow'\nevery = 'often'\n",
        "'queries.q.every': no duration; write 2 or '2 seconds'",
    ),
    "every is nothing": (
        query("rate") + "trigger = 'once'\nevery = '0 seconds'\n",
        "'queries.q.every': Input should be greater than 0, not '0 seconds'",
    ),
    "a target of runs": (
        query("rate") + "trigger = 'availableNow'\ntarget = 2\n",
        "target is not for trigger",
    ),
    "not TOML": ("policy = \n", "not valid TOML"),
    "no queries": ("policy = 'fcfs'\n", "add a section [queries.NAME]"),
    "function missing": ("[queries.q]\n", "'queries.q.query' is missing"),
    "dead master": (
        "[spark]\nmaster = 'spark://127.0.0.1:1'\n" + query("rate"),
        "spark://127.0.0.1:1",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_files(tmp_path: Path, mistake: str) -> None:
    toml, expected = MISTAKES[mistake]
    write(tmp_path, toml)
    done = slackwater(tmp_path, "run")
    assert_one_line(done, expected)


def assert_one_line(done: subprocess.CompletedProcess[str], expected: str) -> None:
    lines = [line for line in done.stderr.splitlines() if line.startswith("slackwater: ")]
    assert len(lines) == 1, done.stderr
    assert expected in lines[0]
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("policy = 'klonk'\n[workers.w1]\ncpus = [0]\n", "unknown policy 'klonk'"),
        ("[workers.w1]\ncpus = [4095]\n", "there is no CPU 4095 here"),
    ],
)
def test_wrong_workers_are_told_before_any_is_started(
    tmp_path: Path, section: str, expected: str
) -> None:
    write(tmp_path, section + query("rate"))
    assert_one_line(slackwater(tmp_path, "fleet", "--seconds", "5"), expected)


def test_no_file(tmp_path: Path) -> None:
    assert_one_line(slackwater(tmp_path, "run"), "no fleet.toml here or in a folder above")
    assert_one_line(slackwater(tmp_path, "run", "my.toml"), "my.toml: no such file; name a fleet")
    (tmp_path / "folder").mkdir()
    assert_one_line(slackwater(tmp_path, "plan", "folder"), "folder/fleet.toml: no such file")


def test_a_function_that_is_not_there_is_told_with_its_query(tmp_path: Path) -> None:
    write(tmp_path, query("ratte", "clicks"))
    assert_one_line(slackwater(tmp_path, "plan"), "clicks: pipeline has no 'ratte'")


def test_a_trigger_that_cannot_be_planned_is_told_before_spark_starts(tmp_path: Path) -> None:
    write(tmp_path, query("windows", "odd") + "trigger = 'now and then'\n")
    assert_one_line(slackwater(tmp_path, "plan"), "odd: trigger: 'now and then' is not a duration")


def test_no_java(tmp_path: Path) -> None:
    write(tmp_path, query("rate"))
    done = slackwater(tmp_path, "run", env={"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)})
    assert_one_line(done, "Java")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--policies", "klinc", "unknown policy"),
        ("--gate", "door", "--gate takes auto, clock, source, none, not 'door'"),
        ("--controller", "cat", "--controller takes process, thread"),
        ("--report", "/proc/nowhere/x", "cannot write the report to /proc/nowhere/x"),
        ("--repeat", "0", "Invalid value for '--repeat'"),
        ("--querys", "8", "No such option: --querys"),
    ],
)
def test_wrong_options_of_bench(tmp_path: Path, option: str, value: str, expected: str) -> None:
    assert_one_line(slackwater(tmp_path, "bench", "ysb", option, value), expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ads", "--policy", "klonk"), "unknown policy 'klonk'"),
        (("ads", "--slots", "0"), "Invalid value for '--slots'"),
        (("folder/ads",), "'folder/ads' is no name of a fleet"),
    ],
)
def test_wrong_controllers(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    assert_one_line(slackwater(tmp_path, "controller", *arguments), expected)


def test_more_decisions_than_are_kept(tmp_path: Path) -> None:
    done = slackwater(tmp_path, "explain", "--last", "100000")
    assert_one_line(done, "less than or equal to 1000")


def test_nobody_to_explain(tmp_path: Path) -> None:
    assert_one_line(slackwater(tmp_path, "explain"), "no fleet is running")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "slackwater" / "other.sock"))
        done = slackwater(tmp_path, "explain", "--fleet", "mine")
    assert_one_line(done, "no fleet named 'mine' is running; these are: other")


def test_workers_of_one_fleet_are_named(tmp_path: Path) -> None:
    assert_one_line(slackwater(tmp_path, "explain"), "no fleet is running")
    with socket.socket(socket.AF_UNIX) as left, socket.socket(socket.AF_UNIX) as right:
        for name, worker in (("ads.left", left), ("ads.right", right)):
            worker.bind(str(tmp_path / "slackwater" / f"{name}.sock"))
        for arguments in ((), ("--fleet", "ads")):
            done = slackwater(tmp_path, "record", "r.jsonl", *arguments)
            assert_one_line(done, "several workers: ads.left, ads.right; name one with --fleet")


def test_a_result_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    done = slackwater(tmp_path, "doctor", "--json", str(tmp_path))
    assert_one_line(done, f"cannot write {tmp_path}: it is a folder; name a file")
    (tmp_path / "file").write_text("")
    done = slackwater(tmp_path, "doctor", "--json", "file/result.json")
    assert_one_line(done, "cannot write file/result.json")


def test_the_version(tmp_path: Path) -> None:
    assert slackwater(tmp_path, "--version").stdout.startswith("slackwater 0.")


def test_mistakes_around_running_fleets(tmp_path: Path) -> None:
    for command in (["status"], ["record", "r.jsonl"]):
        assert_one_line(slackwater(tmp_path, *command), "no fleet is running")
    (tmp_path / "r.jsonl").write_text("what?\n")
    assert_one_line(slackwater(tmp_path, "replay", "r.jsonl"), "r.jsonl is not a recording")
    done = slackwater(tmp_path, "replay", "r.jsonl", "--policies", "kling")
    assert_one_line(done, "unknown policy 'kling'")
    (tmp_path / "fleet.toml").write_text("")
    assert_one_line(slackwater(tmp_path, "init"), "has a fleet.toml already")
    done = slackwater(tmp_path, "dashboard", env={"SLACKWATER_TOKEN": "short"})
    assert_one_line(done, "the token is too short")


def test_help_teaches(tmp_path: Path) -> None:
    for arguments in ([], ["run"], ["bench", "ysb"], ["explain"], ["adopt"], ["doctor"]):
        done = slackwater(tmp_path, *arguments, "--help")
        assert done.returncode == 0
        assert "Usage" in done.stdout


@pytest.mark.spark
@pytest.mark.parametrize(
    ("function", "expected"),
    [("batch", "batch DataFrame; read it with readStream"), ("text", "returned str")],
)
def test_functions_that_return_the_wrong_thing(
    tmp_path: Path, function: str, expected: str
) -> None:
    write(tmp_path, query(function))
    assert_one_line(slackwater(tmp_path, "run"), expected)


@pytest.mark.spark
def test_a_query_that_raises_leaves_the_rest_running(tmp_path: Path) -> None:
    write(tmp_path, query("rate", "good") + query("broken", "bad") + query("writer", "own"))
    done = slackwater(tmp_path, "run", "--seconds", "8")
    assert done.returncode == 1
    assert "bad failed: ValueError: no such table" in done.stdout
    assert "Traceback" not in done.stderr
    assert (tmp_path / "checkpoints" / "good" / "commits" / "1").exists()
    assert (tmp_path / "checkpoints" / "own" / "commits" / "1").exists()


@pytest.mark.spark
def test_a_checkpoint_of_another_query(tmp_path: Path) -> None:
    write(tmp_path, query("rate", "one"))
    assert slackwater(tmp_path, "run", "--seconds", "4").returncode == 0
    write(tmp_path, query("two", "one"))
    assert_one_line(slackwater(tmp_path, "run"), "belongs to another query")
    write(tmp_path, query("rate", "other") + "checkpoint = 'checkpoints/one'\n")
    assert_one_line(slackwater(tmp_path, "run"), "belongs to query 'one'")
    write(tmp_path, "gate = 'source'\n" + query("rate", "one"))
    assert_one_line(slackwater(tmp_path, "run"), "slackwater adopt")


def test_json_may_go_to_standard_output(tmp_path: Path) -> None:
    done = slackwater(tmp_path, "doctor", "--json", "-")
    assert isinstance(json.loads(done.stdout), list | dict)
    assert "java: " in done.stderr
    assert not (tmp_path / "-").exists()
    done = slackwater(tmp_path, "bench", "ysb", "--json", "-")
    assert_one_line(done, "--json takes a file here")


@pytest.mark.spark
def test_bench_writes_its_json(tmp_path: Path) -> None:
    done = slackwater(
        tmp_path, "bench", "ysb", "--queries", "1", "--policies", "fcfs", "--seconds", "6",
        "--warmup", "3", "--window", "2", "--json", "out/bench.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert {"workload", "queries", "rate", "window_s", "runs"} <= result.keys()
    (run,) = result["runs"]
    assert run["policy"] == "fcfs"
    assert run["repeat"] == 0
    assert set(run["latency_s"]) == {"mean", "p50", "p90", "p99", "max"}
    assert run["windows"]["expected"] == run["windows"]["emitted"] == 3
    assert run["windows"]["wrong"] == 0
    keys = {"events", "throughput_eps", "batches", "cpu_s", "controller_cpu_s"}
    assert keys <= run.keys()


def test_simulate_writes_its_json_and_page(tmp_path: Path) -> None:
    arguments = ("latency", "--queries", "2", "--seconds", "8", "--policies", "fcfs,klink")
    done = slackwater(tmp_path, "simulate", *arguments, "--json", "out.json", "--report", "page")
    assert done.returncode == 0, done.stderr
    assert "klink" in done.stdout
    result = json.loads((tmp_path / "out.json").read_text())
    assert [row["policy"] for row in result["rows"]] == ["fcfs", "klink"]
    assert "<svg" in (tmp_path / "page" / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("latency", "--workloads", "ybs"), "unknown workload 'ybs'"),
        (("latency", "--policies", "fcsf"), "Did you mean 'fcfs'?"),
        (("nodes", "--queries", "none"), "--queries takes numbers"),
        (("calibrate", "nowhere.json"), "nowhere.json is not a result of slackwater bench"),
    ],
)
def test_wrong_options_of_simulate(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    done = slackwater(tmp_path, "simulate", *arguments)
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.spark
def test_plan_reads_the_windows_of_the_queries(tmp_path: Path) -> None:
    first, second = query("windows", "first"), query("windows", "second")
    write(tmp_path, first + "rate = 300\n" + second + "one_batch = 'off'\n")
    done = slackwater(
        tmp_path, "plan", "--cores", "2", "--p99", "4", "--rate", "100", "--json", "plan.json"
    )
    assert done.returncode == 0, done.stderr
    assert "such queries on 2 cores" in done.stdout
    answer = json.loads((tmp_path / "plan.json").read_text())
    assert [row["windows"] for row in answer["queries"]] == [30, 30]  # of 2 s, within 60 s
    assert 0.5 < answer["mean_s"] < 4
    assert "second: two batches a window, because one_batch is off" in done.stdout
    assert "first" not in done.stdout.partition("two batches")[0].splitlines()[-1]
    one, two = (row["mean_s"] for row in answer["queries"])
    assert one < two


@pytest.mark.spark
def test_plan_honours_triggers_and_output_modes_and_says_what_it_does_not(tmp_path: Path) -> None:
    slow, quick = "trigger = '6 seconds'\n", "output_mode = 'update'\n"
    write(
        tmp_path,
        "one_batch = 'off'\n"
        + query("windows", "plain")
        + (query("windows", "slow") + slow)
        + (query("windows", "quick") + quick)
        + query("writer", "own"),
    )
    done = slackwater(tmp_path, "plan", "--cores", "8", "--json", "plan.json")
    assert done.returncode == 0, done.stderr
    assert "own: its function returns a writer" in done.stdout
    rows = json.loads((tmp_path / "plan.json").read_text())["queries"]
    mean_s = {row["query"]: row["mean_s"] for row in rows}
    assert mean_s["quick"] < mean_s["plain"] < mean_s["slow"] - 3  # a result takes two batches
    assert "own: two batches" not in done.stdout, "it has no windows"
