"""The arms of a comparison: policies of ours, and Spark as others would run it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from slackwater import policies
from slackwater.core.errors import UsageError
from slackwater_bench.options import split_parameters
from slackwater_bench.trial import Trial

# Arms that are not a policy with our session: Spark itself, as it comes and as an expert runs it.
# None of them is held at a gate.
RIVALS: dict[str, dict[str, Any]] = {
    "spark": {"profile": "stock"},
    "spark-tuned": {"profile": "tuned"},
    "spark-fair": {"profile": "tuned", "fair": True},
    "spark-trigger": {"profile": "tuned"},
}
_TRIGGER = "spark-trigger"


class ArmTrial(Trial):
    """Base of trials that compare policies and Spark itself: the fields by which arms differ."""

    arm_field = "policy"
    policy: str
    profile: str
    trigger_s: float | None  # a processing-time trigger; None: as fast as it goes
    fair: bool  # Spark's FAIR scheduler, a pool for each query
    parameters: dict[str, Any]  # for the policy's constructor
    one_batch: str  # or off: a window takes two batches


AnyTrial = TypeVar("AnyTrial", bound=ArmTrial)


@dataclass(frozen=True, slots=True)
class Arm(Generic[AnyTrial]):
    """One arm: its name as typed, and its trial but for the number of queries and the seed."""

    name: str
    trial: AnyTrial
    swept: bool = False  # its trigger interval is to be found by a sweep first


def arms(names: Sequence[str], base: AnyTrial) -> list[Arm[AnyTrial]]:
    """Return an arm for each name; what cannot be is refused before anything runs.

    >>> from slackwater_bench.klink.trial import PolicyTrial
    >>> [arm.trial.profile for arm in arms(["spark", "fcfs"], PolicyTrial(""))]
    ['stock', 'tuned']
    >>> arms(["spark-trigger:1.5"], PolicyTrial(""))[0].trial.trigger_s
    1.5
    >>> arms(["random-order:seed=7"], PolicyTrial(""))[0].trial.parameters
    {'seed': 7}
    >>> arms(["klink:one_batch=off"], PolicyTrial(""))[0].trial.one_batch
    'off'
    """
    if not names:
        raise UsageError("name at least one policy")
    return [_arm(name, base) for name in dict.fromkeys(names)]


def _arm(text: str, base: AnyTrial) -> Arm[AnyTrial]:
    if text.startswith(f"{_TRIGGER}:"):
        interval_s = _seconds(text.removeprefix(f"{_TRIGGER}:"), text)
        return Arm(text, _changed(base, policy="spark", trigger_s=interval_s, **RIVALS[_TRIGGER]))
    if text in RIVALS:
        trial = _changed(base, policy="spark", **RIVALS[text])
        return Arm(text, trial, swept=text == _TRIGGER)
    policy, parameters = split_parameters(text)
    one_batch = parameters.pop("one_batch", base.one_batch)
    if one_batch not in ("auto", "off"):
        raise UsageError(f"{text}: one_batch is auto or off")
    policies.load(policy, **parameters)
    return Arm(text, _changed(base, policy=policy, parameters=parameters, one_batch=one_batch))


def _seconds(text: str, arm: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{arm}: the interval is a number of seconds, not {text!r}") from None
    if not 0.001 <= seconds < 3600:
        raise UsageError(f"{arm}: the interval must lie between 0.001 and 3600 s")
    return seconds


def _changed(trial: AnyTrial, **changes: Any) -> AnyTrial:
    changed: AnyTrial = replace(trial, **changes)  # type: ignore[type-var]  # a dataclass, always
    return changed
