"""A Spark session for many small micro-batches."""

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.spark.session.hadoop import apply_live
from slackwater.engines.spark.session.java import check_java
from slackwater.engines.spark.session.master import check_master, choose_master, is_local
from slackwater.engines.spark.session.profile import (
    PROFILE_NAMES,
    jvm_flags,
    settings_of,
    spark_conf,
)
from slackwater.engines.spark.session.profile import Setting as ProfileSetting

LOOPBACK = "127.0.0.1"
_PARTITIONS = "spark.sql.shuffle.partitions"
_MASTER = "spark.master"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def session(
    app_name: str = "slackwater",
    master: str | None = None,
    profile: str = "tuned",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Make a session tuned for many small micro-batches.

    Parameters
    ----------
    app_name
        As Spark shows it.
    master
        Spark's master; otherwise ``SPARK_MASTER``, what is configured already, or ``local[*]``.
    profile
        ``tuned`` for small batches; ``large`` keeps the JVM's optimising compiler, for batches of
        100,000 rows and more or sessions that live for hours; ``stock`` changes nothing.
    conf
        Spark configuration that wins over the profile.

    Raises
    ------
    UsageError
        If Java is missing or too old, if nobody answers at the master's address, or if this
        process already has a session with settings that cannot be changed any more.
    """
    if profile not in PROFILE_NAMES:
        raise UsageError(f"unknown profile {profile!r}: use one of {', '.join(PROFILE_NAMES)}")
    spark = build_session(app_name, master, settings_of(profile), conf)
    if profile == "tuned" and _PARTITIONS not in (conf or {}) and is_local(spark.conf.get(_MASTER)):
        # Spark's 200 are for a cluster; a checkpoint keeps the number it was made with.
        spark.conf.set(_PARTITIONS, spark.sparkContext.defaultParallelism)
    return spark


def build_session(
    app_name: str,
    master: str | None,
    settings: tuple[ProfileSetting, ...],
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Make a session with any choice of settings, so that each can be measured alone."""
    own = {key: str(value) for key, value in (conf or {}).items()}
    chosen = choose_master(master, own)
    wanted = spark_conf(settings) | own
    flags = _merged_flags(jvm_flags(settings), own.get(_JVM_OPTIONS, ""))
    if flags:
        wanted[_JVM_OPTIONS] = " ".join(flags)
    if chosen is not None:
        wanted["spark.master"] = chosen

    running = _running_session()
    if running is not None:
        return _reuse(running, wanted, flags)
    if SparkContext._gateway is None:
        check_java()
    elif missing := _missing_flags(SparkContext._jvm, flags):
        warnings.warn(
            f"the JVM of this process already runs, so these flags have no effect: "
            f"{' '.join(missing)}; start a new Python process to have them",
            stacklevel=3,
        )
    if chosen is not None:
        check_master(chosen)
    spark = _start(app_name, _places(chosen) | wanted)
    apply_live(spark, {setting.key for setting in settings if setting.where == "live"})
    return spark


def _places(master: str | None) -> dict[str, str]:
    """Return where things are: this interpreter for Python workers, loopback for the driver.

    With a master on another host the executors must reach the driver, so Spark chooses.
    """
    places = {"spark.pyspark.python": sys.executable, "spark.pyspark.driver.python": sys.executable}
    if is_local(master):
        places |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    return places


def _start(app_name: str, wanted: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(app_name)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    environment = {"PYSPARK_PYTHON": wanted["spark.pyspark.python"]}
    if wanted.get("spark.driver.bindAddress") == LOOPBACK:
        environment["SPARK_LOCAL_IP"] = LOOPBACK  # the web page listens here and nowhere else
    with _environment_defaults(environment):
        try:
            return builder.getOrCreate()
        except (PySparkException, Py4JError, OSError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise EngineError(f"Spark did not start: {reason}") from error


def _merged_flags(profile_flags: list[str], user_options: str) -> list[str]:
    """Merge flags, the profile's first, so that the user's win.

    A JVM refuses two garbage collectors.
    """
    if _COLLECTOR.search(user_options):
        profile_flags = [flag for flag in profile_flags if not _COLLECTOR.match(flag)]
    return profile_flags + user_options.split()


def _running_session() -> SparkSession | None:
    active = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if active is None or active.sparkContext._jsc is None:
        return None
    return active


def _reuse(running: SparkSession, wanted: Mapping[str, str], flags: list[str]) -> SparkSession:
    """Return the running session with the wanted settings, or say what cannot be had."""
    context_conf = dict(running.sparkContext.getConf().getAll())
    refused = [f"JVM flag {flag}" for flag in _missing_flags(running._jvm, flags)]
    changes = {}
    for key, value in wanted.items():
        if key == _JVM_OPTIONS:
            continue
        if running.conf.isModifiable(key):
            changes[key] = value
        elif context_conf.get(key) != value:
            refused.append(f"{key}={value} (is {context_conf.get(key, 'not set')})")
    if refused:
        raise UsageError(
            "a Spark session already runs in this process and cannot take on: "
            f"{', '.join(refused)}; stop it and start a new process, or use profile='stock'"
        )
    for key, value in changes.items():
        running.conf.set(key, value)
    return running


def _missing_flags(jvm: Any, flags: list[str]) -> list[str]:
    if not flags:
        return []
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    given = set(runtime.getInputArguments())
    return [flag for flag in flags if flag not in given]


@contextmanager
def _environment_defaults(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the JVM to be started; what is set already stays."""
    added = {key: value for key, value in values.items() if key not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for key in added:
            os.environ.pop(key, None)
