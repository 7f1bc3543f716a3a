"""What every translator keeps, and what is special to each."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater import enforce
from slackwater.core.entities import Operator, Scale, Thread
from slackwater.core.errors import UsageError
from slackwater.enforce import Ranked
from slackwater.enforce.normalise import NICE_RATIO, SPAN, nice_by_ratio, normalise
from slackwater.enforce.settings import (
    GroupMember,
    GroupQuota,
    GroupShare,
    Nice,
    Scheduling,
    Setting,
)

NAMES = enforce.names()
SCALES: list[Scale] = ["linear", "log", "ratio"]
priorities = st.lists(
    st.floats(-1e9, 1e9) | st.just(0.0) | st.floats(0, 1e-300), min_size=1, max_size=30
)


def ranked(values: list[float]) -> list[Ranked]:
    return [
        Ranked(Operator(f"o{i}", f"q{i % 3}", threads=(Thread(1, 100 + i, 7),)), value, "e")
        for i, value in enumerate(values)
    ]


def worth(settings: list[Setting], thread: Thread) -> tuple[float, ...]:
    """How well a thread is served: larger is better, group before thread."""
    groups = {s.thread: s.group for s in settings if isinstance(s, GroupMember)}
    found: list[float] = []
    for setting in settings:
        match setting:
            case GroupShare(group, shares) if groups.get(thread) == group:
                found.append(shares)
            case GroupQuota(group, cpus) if groups.get(thread) == group:
                found.append(cpus or 0.0)
            case Nice(of, value) if of == thread:
                found.append(-value)
            case Scheduling(of, scheduler, priority) if of == thread:
                found.append(priority if scheduler == "round-robin" else -1)
    return tuple(found)


@pytest.mark.parametrize("name", NAMES)
@given(values=priorities, scale=st.sampled_from(SCALES))
def test_all_settings_are_in_the_kernels_ranges(
    name: str, values: list[float], scale: Scale
) -> None:
    for setting in enforce.load(name).plan(ranked(values), scale):
        match setting:
            case Nice(_, value):
                assert -20 <= value <= 19
            case GroupShare(_, shares):
                assert 2 <= shares <= 262144
            case GroupQuota(_, cpus):
                assert cpus is None or cpus > 0
            case Scheduling(_, scheduler, priority):
                assert priority == 0 if scheduler == "other" else 1 <= priority <= 99


@pytest.mark.parametrize("name", ["nice", "real-time"])
@given(values=priorities, scale=st.sampled_from(SCALES))
def test_the_more_important_is_never_served_worse(
    name: str, values: list[float], scale: Scale
) -> None:
    order = sorted(ranked(values), key=lambda each: each.priority)
    settings = enforce.load(name).plan(order, scale)
    served = [worth(settings, each.operator.threads[0]) for each in order]
    for (low, serves_low), (high, serves_high) in zip(
        zip(order, served, strict=True), list(zip(order, served, strict=True))[1:], strict=False
    ):
        if high.priority > low.priority:
            assert serves_high >= serves_low


@pytest.mark.parametrize("name", NAMES)
def test_every_thread_of_every_operator_is_spoken_of(name: str) -> None:
    operator = Operator("o", "q", threads=(Thread(1, 2, 3), Thread(1, 4, 5)))
    plan = enforce.load(name).plan([Ranked(operator, 1.0)], "linear")
    assert {s.thread for s in plan if isinstance(s, Nice | Scheduling | GroupMember)} == {
        *operator.threads
    }


@pytest.mark.parametrize("name", NAMES)
def test_operators_that_do_not_run_here_are_passed_over(name: str) -> None:
    assert enforce.load(name).plan([Ranked(Operator("o", "q"), 1.0)], "linear") == []


def test_every_file_is_a_translator() -> None:
    folder = Path(enforce.__file__).parent / "translators"
    files = {path.stem for path in folder.glob("[a-z]*.py")} - {"base"}
    assert {name.replace("-", "_") for name in NAMES} == files


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=10))
def test_nice_keeps_ratios_that_fit_its_range(values: list[float]) -> None:
    found = nice_by_ratio(dict(enumerate(values)), worst=19, best=-20)
    for i, n in found.items():
        for j, m in found.items():
            assert NICE_RATIO ** (m - n) == pytest.approx(values[i] / values[j])


@given(st.dictionaries(st.integers(), st.floats(1e-9, 1e9), min_size=1))
def test_shares_keep_ratios_down_to_the_least(values: dict[int, float]) -> None:
    found = normalise(values, "ratio", 2, 8192)
    high = max(values, key=lambda key: values[key])
    for key, shares in found.items():
        assert shares == pytest.approx(max(2, 8192 * values[key] / values[high]))


@pytest.mark.parametrize("scale", SCALES)
def test_an_empty_queue_is_no_error_before_a_logarithm(scale: Scale) -> None:
    found = normalise({"empty": 0.0, "one": 1.0, "full": SPAN * 2}, scale, 19, -20)
    assert found["empty"] >= found["one"] >= found["full"]


def test_a_query_has_the_whole_range_of_nice_to_itself() -> None:
    plan = enforce.load("shares-nice", best=-20).plan(ranked([1, 1000, 3, 2, 2000, 30]), "linear")
    nice = {s.thread.tid: s.value for s in plan if isinstance(s, Nice)}
    assert nice == {100: 19, 103: -20, 101: 19, 104: -20, 102: 19, 105: -20}
    assert len({s.shares for s in plan if isinstance(s, GroupShare)}) == 1


def test_the_least_important_query_has_its_least_share() -> None:
    translator = enforce.load("shares-nice", groups="highest", least_share=256)
    plan = translator.plan(ranked([1, 1000, 3, 2, 2000, 30]), "linear")
    shares = [s.shares for s in plan if isinstance(s, GroupShare)]
    assert (min(shares), max(shares)) == (256, 1024)


def test_threads_of_the_engine_itself_get_the_best_nice_value_and_nothing_else() -> None:
    own = Ranked(Operator("itself", "", threads=(Thread(1, 7, 3),), helper=True), 5.0, "flink")
    steered = Ranked(Operator("o", "q", threads=(Thread(1, 8, 3),)), 5.0, "flink")
    low = Ranked(Operator("p", "q", threads=(Thread(1, 9, 3),)), 1.0, "flink")
    nice = enforce.load("nice", best=-20).plan([own, steered, low], "linear")
    assert {s.thread.tid: s.value for s in nice if isinstance(s, Nice)} == {7: -20, 8: -20, 9: 19}
    groups = enforce.load("cpu-shares").plan([own, steered, low], "linear")
    assert {s.thread.tid for s in groups if isinstance(s, GroupMember)} == {8, 9}


def test_queries_of_two_engines_are_kept_apart() -> None:
    operator = Operator("o", "q", threads=(Thread(1, 2, 3),))
    other = Operator("o", "q", threads=(Thread(9, 9, 3),))
    plan = enforce.load("cpu-shares", by="query").plan(
        [Ranked(operator, 1.0, "spark"), Ranked(other, 2.0, "flink")], "linear"
    )
    assert {s.group for s in plan if isinstance(s, GroupMember)} == {"spark@q", "flink@q"}


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("nice", {"best": -21}, "best must be between -20 and 19"),
        ("nice", {"best": 5, "worst": 0}, "worst must be between 5 and 19"),
        ("cpu-shares", {"by": "job"}, "by takes operator or query"),
        ("cpu-quota", {"best": 1000.0}, "best must be between"),
        ("real-time", {"share": 0}, "share must be above 0"),
        ("nise", {}, "Did you mean 'nice'?"),
    ],
)
def test_a_wrong_parameter_is_one_clear_line(
    name: str, parameters: dict[str, float], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        enforce.load(name, **parameters)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
