"""The file: engines, and policies with their periods, scopes and translators."""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from slackwater.common.toml_files import load_toml
from slackwater.core.errors import UsageError


class EngineSection(BaseModel):
    """``[engines.NAME]``; keys beyond ``driver`` are the driver's."""

    model_config = ConfigDict(extra="allow", frozen=True)

    driver: str

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class PolicySection(BaseModel):
    """``[policies.NAME]``"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: str | None = None  # by name or module:Class
    parameters: dict[str, Any] = {}  # of the policy
    priorities: dict[str, float] = {}  # instead of a policy: of logical operators, as ratios
    scale: Literal["linear", "log", "ratio"] | None = None  # of priorities; none: the policy's
    translator: str = "nice"
    translator_parameters: dict[str, Any] = {}
    period: float = Field(1.0, ge=0.01)  # seconds
    engines: list[str] = []  # none: all
    queries: str = ".*"  # regular expression of their names
    operators: Literal["physical", "logical"] = "physical"  # what the policy speaks of
    rule: Literal["highest", "mean"] = "highest"  # for logical operators that were fused
    when: str | None = None  # a condition such as "queue-size.max > 1000"
    enabled: bool = True  # False: only when it is switched on by hand


class MiddlewareFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field("node", pattern=r"^[\w-]{1,40}$")
    cgroup: str = "/"  # the control group below which ours is made
    engines: dict[str, EngineSection] = {}
    policies: dict[str, PolicySection] = {}


def load(path: Path) -> MiddlewareFile:
    """Read and check; what is wrong is told in one line."""
    file = load_toml(path, MiddlewareFile)
    try:
        _check(file)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return file


def _check(file: MiddlewareFile) -> None:
    if not file.engines:
        raise UsageError("no engines; add a section [engines.NAME] with driver = …")
    for name, engine in file.engines.items():
        if "label" in engine.parameters:
            raise UsageError(f"engines.{name}: its label is its name; leave out 'label'")
    if not file.policies:
        raise UsageError("no policies; add a section [policies.NAME] with policy = …")
    for name, section in file.policies.items():
        unknown = [engine for engine in section.engines if engine not in file.engines]
        if unknown:
            known = ", ".join(file.engines)
            raise UsageError(f"policies.{name}: no engine named {unknown[0]!r}; these are: {known}")
        if (section.policy is None) == (not section.priorities):
            raise UsageError(f"policies.{name}: give either policy or priorities")
        if any(priority <= 0 for priority in section.priorities.values()):
            raise UsageError(f"policies.{name}: priorities must be above zero")
        try:
            re.compile(section.queries)
        except re.error as error:
            raise UsageError(
                f"policies.{name}.queries: not a regular expression: {error}"
            ) from None
