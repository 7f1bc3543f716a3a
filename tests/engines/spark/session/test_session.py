"""The session profile: what it refuses, and what a tuned session really has."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.java import check_java
from slackwater.engines.spark.session.master import check_master, choose_master
from slackwater.engines.spark.session.profile import SETTINGS, jvm_flags, settings_of, spark_conf
from slackwater.engines.spark.session.session import _merged_flags, session
from tests.root import ROOT


def run_python(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a process of its own, so with a JVM of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )


def answer_of(code: str, **environment: str) -> Any:
    """The JSON that the code prints last."""
    done = run_python(code, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


# Rows


def test_names_and_keys_are_unique_and_reasons_are_one_line() -> None:
    assert len({s.name for s in SETTINGS}) == len(SETTINGS)
    assert len({s.key for s in SETTINGS}) == len(SETTINGS)
    assert all(s.reason and "\n" not in s.reason for s in SETTINGS)


def test_every_row_is_documented() -> None:
    page = (ROOT / "docs" / "session-profile.md").read_text()
    assert [s.name for s in SETTINGS if f"`{s.name}`" not in page] == []


def test_profiles_differ_as_they_say() -> None:
    assert settings_of("stock") == ()
    assert spark_conf(settings_of("large")) == spark_conf(settings_of("tuned"))
    assert "-XX:TieredStopAtLevel=1" not in jvm_flags(settings_of("large"))
    assert spark_conf(settings_of("tuned"))["spark.sql.adaptive.enabled"] == "false"


def test_a_users_flag_comes_last_and_only_one_collector_remains() -> None:
    ours = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    assert _merged_flags(ours, "-XX:+UseZGC -Dx=1") == [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseZGC",
        "-Dx=1",
    ]


# Java


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


def test_the_java_of_this_machine_will_do() -> None:
    assert check_java().major >= 17


def test_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2")))
    with pytest.raises(UsageError, match=r"Java 11\.0\.2, too old.*JAVA_HOME") as caught:
        check_java()
    assert "\n" not in str(caught.value)


def test_new_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21.0.1")))
    assert check_java().major == 21


def test_missing_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no Java found"):
        check_java()


def test_wrong_java_home_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="JAVA_HOME"):
        check_java()


# Master


def test_the_master_comes_from_the_nearest_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    assert choose_master(None, {}) == "local[*]"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master spark://h:7077 pyspark-shell")
    assert choose_master(None, {}) is None
    monkeypatch.setenv("SPARK_MASTER", "local[3]")
    assert choose_master(None, {}) == "local[3]"
    assert choose_master(None, {"spark.master": "local[4]"}) == "local[4]"
    assert choose_master("local[5]", {"spark.master": "local[4]"}) == "local[5]"


def test_a_master_in_spark_defaults_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("# x\nspark.master   spark://h:7077\n")
    assert choose_master(None, {}) is None


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_dead_master_is_refused_at_once() -> None:
    url = f"spark://127.0.0.1:{closed_port()}"
    with pytest.raises(UsageError, match=f"no Spark master answers at {url}") as caught:
        check_master(url)
    assert "\n" not in str(caught.value)


def test_one_living_master_of_two_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{port}")


@pytest.mark.parametrize("url", ["spark://nohost", "spark://h:port", "lokal[2]", "http://h:1"])
def test_a_wrong_master_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no Spark master"):
        check_master(url)


@pytest.mark.parametrize("url", ["local", "local[2]", "local[*]", "local[2,3]", "yarn"])
def test_masters_without_an_address_pass(url: str) -> None:
    check_master(url)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown profile 'fast': use one of tuned, large, stock"):
        session(profile="fast")


# A real session

FACTS = """
import json, os, sys, tempfile
from slackwater.engines.spark.session.session import session
spark = session({arguments})
arguments = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
hadoop = spark._jsparkSession.sessionState().newHadoopConf()

def crc_file_written():
    with tempfile.TemporaryDirectory() as folder:
        file = spark._jvm.org.apache.hadoop.fs.Path(folder + "/x")
        file.getFileSystem(hadoop).create(file).close()
        return os.path.exists(folder + "/.x.crc")

print(json.dumps(dict(
    flags=list(arguments),
    conf=dict(spark.sparkContext.getConf().getAll()),
    partitions=spark.conf.get("spark.sql.shuffle.partitions"),
    adaptive=spark.conf.get("spark.sql.adaptive.enabled"),
    crc=crc_file_written(),
    yarn=hadoop.get("yarn.acl.enable"),
    origins=hadoop.getPropertySources("fs.defaultFS") is not None,
    worker=spark.sparkContext.parallelize([1], 1).map(lambda _: sys.executable).first(),
    same=session({arguments}) is spark,
)))
"""


@pytest.mark.spark
def test_a_tuned_session_has_what_the_profile_says() -> None:
    facts = answer_of(FACTS.format(arguments="master='local[1]'"))
    settings = settings_of("tuned")
    assert set(jvm_flags(settings)) <= set(facts["flags"])
    assert spark_conf(settings).items() <= facts["conf"].items()
    assert facts["conf"]["spark.driver.host"] == "127.0.0.1"
    assert facts["adaptive"] == "false"
    assert facts["worker"] == sys.executable
    assert facts["yarn"] is None
    assert not facts["origins"]
    assert not facts["crc"]
    assert facts["same"]


@pytest.mark.spark
def test_a_stock_session_is_untouched_and_own_conf_wins() -> None:
    arguments = "master='local[1]', profile='stock', conf={'spark.sql.shuffle.partitions': '7'}"
    facts = answer_of(FACTS.format(arguments=arguments))
    assert not set(jvm_flags(settings_of("tuned"))) & set(facts["flags"])
    assert facts["adaptive"] == "true"
    assert facts["partitions"] == "7"
    assert facts["origins"]
    assert facts["crc"]


REPLACE = """
import json, tempfile
from pathlib import Path
from slackwater.engines.spark.session.session import session
spark = session(master="local[1]")
jvm = spark._jvm
hadoop = spark._jsparkSession.sessionState().newHadoopConf()
folder = tempfile.mkdtemp()
file = jvm.org.apache.hadoop.fs.Path("file://" + folder + "/7.delta")
local = file.getFileSystem(hadoop)
local.setWriteChecksum(True)  # as stock Spark left it
old = local.create(file)
old.write(65)
old.close()
local.setWriteChecksum(False)
assert Path(folder, ".7.delta.crc").exists()
create = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create
new = create(file.getParent(), hadoop).createAtomic(file, True)
new.write(66)
new.close()
names = sorted(path.name for path in Path(folder).iterdir())
reader = local.open(file)
print(json.dumps([names, reader.read()]))
"""


@pytest.mark.spark
def test_a_batch_that_is_redone_replaces_its_state_file() -> None:
    names, content = answer_of(REPLACE)
    assert names == ["7.delta"]  # no temporary file left, and no .crc that fits the old content
    assert content == 66


CONFLICT = """
from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.session import session
first = session(master="local[1]", profile="stock")
assert session(master="local[1]", profile="stock") is first
try:
    session(master="local[1]")
except UsageError as error:
    import json
    print(json.dumps(str(error)))
"""


@pytest.mark.spark
def test_a_running_session_with_other_settings_is_named() -> None:
    message = answer_of(CONFLICT)
    assert "already runs in this process" in message
    assert "-XX:TieredStopAtLevel=1" in message
    assert "spark.ui.enabled=false" in message
    assert "\n" not in message
    assert "spark.sql.adaptive.enabled" not in message  # this one can be changed at any time


@pytest.mark.spark
def test_a_jvm_that_refuses_its_flags_is_one_line() -> None:
    code = """
from slackwater.core.errors import EngineError
from slackwater.engines.spark.session.session import session
try:
    session(master="local[1]", conf={"spark.driver.extraJavaOptions": "-Xss1"})
except EngineError as error:
    import json
    print(json.dumps(str(error)))
"""
    message = answer_of(code)
    assert message.startswith("Spark did not start: ")
    assert "\n" not in message
