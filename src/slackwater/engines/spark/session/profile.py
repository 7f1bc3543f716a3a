"""What the tuned session changes, one row a setting, each with its reason.

A micro-batch costs Spark much the same whatever its size, so a session that runs many small ones
is tuned by leaving out work that is done once a batch. What each row saves is measured by
``python -m slackwater_bench.costs.session`` and written down in ``docs/session-profile.md``.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from slackwater.engines.spark.session.versions import checkpoint_file_manager

Where = Literal["conf", "jvm flag", "live"]
ProfileName = Literal["tuned", "large", "stock"]
PROFILE_NAMES: tuple[str, ...] = get_args(ProfileName)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a profile."""

    name: str  # short, for tables and the command line
    key: str
    value: str
    where: Where  # Spark conf, flag of the driver's JVM, or done to the live session
    reason: str
    in_large: bool = True  # False: pays for small batches only, so not in "large"


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "checkpoint-files",
        "spark.sql.streaming.checkpointFileManagerClass",
        checkpoint_file_manager(),
        "conf",
        "the default forks several processes for every small checkpoint file; same rename commit",
    ),
    Setting(
        "hadoop-files",
        "spark.hadoop.fs.file.impl",
        "org.apache.hadoop.fs.LocalFileSystem",
        "conf",
        "not for speed: Hive's proxy for it cannot replace a file, so a batch redone after a crash"
        " would keep the state of its first attempt; needed with checkpoint-files",
    ),
    Setting(
        "no-crc-files",
        "LocalFileSystem.setWriteChecksum",
        "false",
        "live",
        "Hadoop writes a .crc file beside each local file and forks a chmod for it too",
    ),
    Setting(
        "light-hadoop-conf",
        "Configuration",
        "light",
        "live",
        "every stateful operator broadcasts it in every batch: 1,100 entries, each gzipped alone",
    ),
    Setting(
        "no-adaptive",
        "spark.sql.adaptive.enabled",
        "false",
        "conf",
        "re-planning between stages costs more than it can save on a small batch",
    ),
    Setting(
        "no-ui",
        "spark.ui.enabled",
        "false",
        "conf",
        "one server with its port and threads less; saves start-up, nothing measurable per batch",
    ),
    Setting(
        "no-console-bar",
        "spark.ui.showConsoleProgress",
        "false",
        "conf",
        "PySpark's progress bar asks for all stages five times a second",
    ),
    Setting(
        "quick-compiler",
        "-XX:TieredStopAtLevel",
        "1",
        "jvm flag",
        "planning code is wide and rarely hot: the optimising compiler takes long to pay back",
        in_large=False,
    ),
    Setting(
        "code-cache",
        "-XX:ReservedCodeCacheSize",
        "240m",
        "jvm flag",
        "quick-compiler alone would shrink it to 48 MB, which a fleet fills within minutes; then"
        " the JVM stops compiling and runs new code interpreted",
        in_large=False,
    ),
)


def settings_of(profile: str) -> tuple[Setting, ...]:
    """Return the rows that a profile applies.

    >>> settings_of("stock")
    ()
    >>> {s.name for s in settings_of("tuned")} >= {s.name for s in settings_of("large")}
    True
    """
    if profile == "stock":
        return ()
    return tuple(s for s in SETTINGS if profile == "tuned" or s.in_large)


def spark_conf(settings: tuple[Setting, ...]) -> dict[str, str]:
    """Return those of the settings that are plain Spark configuration."""
    return {s.key: s.value for s in settings if s.where == "conf"}


def jvm_flags(settings: tuple[Setting, ...]) -> list[str]:
    """Return those of the settings that the driver's JVM must be started with."""
    return [f"{s.key}={s.value}" if s.value else s.key for s in settings if s.where == "jvm flag"]
