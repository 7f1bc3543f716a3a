"""The kernel splits the CPU as it was asked to, and has it all back afterwards."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slackwater import enforce
from slackwater.common.procfs import thread_cpu_ns, threads_of
from slackwater.core.entities import Operator, Thread
from slackwater.enforce import Ranked
from slackwater.enforce.applier import Applier
from slackwater.enforce.groups import Groups
from slackwater.enforce.journal import Journal, MadeGroup
from tests.busy_process import busy_process, cpu_ratio, idle_process

BASE = os.getpriority(os.PRIO_PROCESS, 0)  # what processes of ours start with


def ranked(thread: Thread, priority: float, query: str = "q") -> Ranked:
    return Ranked(Operator(f"op-{thread.tid}", query, threads=(thread,)), priority, "e")


def nice_of(thread: Thread) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread.tid)


@pytest.mark.usefixtures("may_nice")
@pytest.mark.parametrize("ratio", [1.0, 3.0, 8.0])
def test_nice_splits_the_cpu_in_the_ratio_asked_for(applier: Applier, ratio: float) -> None:
    with busy_process(2) as busy:
        first, second = busy.threads
        plan = enforce.load("nice", best=-20).plan(
            [ranked(first, ratio), ranked(second, 1)], "ratio"
        )
        applier.apply("p", plan)
        assert cpu_ratio(first, second) == pytest.approx(ratio, rel=0.1)
        applier.restore()
        assert [nice_of(thread) for thread in busy.threads] == [BASE, BASE]


@pytest.mark.parametrize("ratio", [1.0, 3.0, 8.0])
def test_shares_split_the_cpu_in_the_ratio_asked_for(
    grouping_applier: Applier, ratio: float
) -> None:
    with busy_process(2) as busy:
        first, second = busy.threads
        plan = enforce.load("cpu-shares").plan([ranked(first, ratio), ranked(second, 1)], "ratio")
        grouping_applier.apply("p", plan)
        assert cpu_ratio(first, second) == pytest.approx(ratio, rel=0.1)


def test_shares_hold_between_processes_and_nice_inside_each(grouping_applier: Applier) -> None:
    """Two queries 2 to 1, whatever their sessions; in the first two operators 3 to 1."""
    with busy_process(2, session=True) as one, busy_process(1, session=True) as other:
        (first, second), (third,) = one.threads, other.threads
        translator = enforce.load("shares-nice", weights={"e/big": 2.0})
        plan = translator.plan(
            [ranked(first, 3, "big"), ranked(second, 1, "big"), ranked(third, 1, "small")], "ratio"
        )
        grouping_applier.apply("p", plan)
        assert cpu_ratio(first, third) == pytest.approx(2 * 3 / 4, rel=0.1)
        assert cpu_ratio(first, second) == pytest.approx(3, rel=0.1)


def test_a_quota_is_never_exceeded(grouping_applier: Applier) -> None:
    with busy_process(2) as busy:
        first, second = busy.threads
        translator = enforce.load("cpu-quota", by="operator", best=0.3, worst=0.1)
        plan = translator.plan([ranked(first, 3), ranked(second, 1)], "ratio")
        grouping_applier.apply("p", plan)
        began_s, before = time.monotonic(), [thread_cpu_ns(t) for t in busy.threads]
        time.sleep(3)
        passed_ns = (time.monotonic() - began_s) * 1e9
        used = [thread_cpu_ns(t) - b for t, b in zip(busy.threads, before, strict=True)]
        assert 0 < used[0] / passed_ns < 0.3 * 1.1
        assert 0 < used[1] / passed_ns < 0.1 * 1.1


@pytest.mark.usefixtures("may_nice")
def test_a_real_time_thread_runs_before_others(applier: Applier, complaints: list[str]) -> None:
    with busy_process(2) as busy:
        first, second = busy.threads
        plan = enforce.load("real-time", share=0.5).plan(
            [ranked(first, 9), ranked(second, 1)], "linear"
        )
        applier.apply("p", plan)
        if complaints:
            pytest.skip(f"no real-time here: {complaints[0]}")
        assert cpu_ratio(first, second) > 5
        applier.restore()
        assert os.sched_getscheduler(first.tid) == os.SCHED_OTHER


@pytest.mark.usefixtures("may_nice")
def test_threads_that_inherited_a_value_are_put_back_too(applier: Applier) -> None:
    with idle_process(2) as busy:
        applier.apply(
            "p", enforce.load("nice", best=-20).plan([ranked(busy.threads[0], 1)], "ratio")
        )
        child = busy.offspring()
        assert nice_of(child) == -20
        applier.restore()
        assert {nice_of(thread) for thread in threads_of(busy.process.pid)} == {BASE}


@pytest.mark.usefixtures("may_nice")
def test_a_thread_that_inherited_is_put_back_to_what_its_process_had(applier: Applier) -> None:
    """Also where it was steered itself, and when a policy lets go of it while it runs."""
    with idle_process(2) as busy:
        nice = enforce.load("nice", best=-20)
        first = busy.threads[0]
        applier.apply("p", nice.plan([ranked(first, 1)], "ratio"))
        child, other = busy.offspring(), busy.offspring()
        applier.apply("p", nice.plan([ranked(first, 1), ranked(child, 2)], "ratio"))
        applier.apply("p", nice.plan([ranked(first, 1)], "ratio"))
        assert nice_of(child) == BASE
        assert nice_of(other) == -20, "nobody has spoken of it"
        applier.release("p")
        assert {nice_of(thread) for thread in threads_of(busy.process.pid)} == {BASE}


@pytest.mark.usefixtures("may_nice")
def test_a_process_that_a_steered_one_started_is_put_back_too(applier: Applier) -> None:
    with idle_process(1) as busy:
        nice = enforce.load("nice", best=-20)
        applier.apply("p", nice.plan([ranked(busy.threads[0], 1)], "ratio"))
        steered, left_alone = busy.fork(), busy.fork()
        assert nice_of(left_alone) == -20
        applier.apply("p", nice.plan([ranked(busy.threads[0], 1), ranked(steered, 1)], "ratio"))
        applier.restore()
        assert [nice_of(each) for each in (busy.threads[0], steered, left_alone)] == [BASE] * 3


def test_what_is_born_in_a_group_goes_back_to_where_its_process_was(
    grouping_applier: Applier, groups: Groups
) -> None:
    home = groups.root.with_name(f"{groups.root.name}-home")
    home.mkdir()
    try:
        with idle_process(1) as busy:
            for thread in threads_of(busy.process.pid):
                groups.put(thread.tid, home)
            before = groups.place_of(busy.threads[0])
            shares = enforce.load("cpu-shares")
            grouping_applier.apply("p", shares.plan([ranked(busy.threads[0], 1)], "ratio"))
            born, process = busy.offspring(), busy.fork()
            assert groups.holds(groups.place_of(process) or "")
            grouping_applier.release("p")
            for each in (busy.threads[0], born, process):
                assert groups.place_of(each) == before
    finally:
        groups.remove(home)


def test_two_policies_may_group_the_same_threads(grouping_applier: Applier, groups: Groups) -> None:
    with idle_process(1) as busy:
        (thread,) = busy.threads
        plans = {
            name: enforce.load(name, by="query").plan([ranked(thread, 1)], "ratio")
            for name in ("cpu-shares", "cpu-quota")
        }
        for name, plan in plans.items():
            grouping_applier.apply(name, plan)
        grouped = groups.place_of(thread)
        grouping_applier.release("cpu-shares")
        assert groups.place_of(thread) == grouped
        grouping_applier.release("cpu-quota")
        assert not groups.holds(groups.place_of(thread) or "")
        assert [each for each in groups.root.iterdir() if each.is_dir()] == []


@pytest.mark.usefixtures("may_nice")
def test_real_time_is_given_up_again_without_the_right_to_change_everything(tmp_path: Path) -> None:
    """Without it the flag that children do not inherit it stays."""
    code = (
        "import os; from pathlib import Path; from slackwater.common.procfs import find_thread;"
        "from slackwater.enforce.applier import Applier;"
        "from slackwater.enforce.journal import Journal;"
        "from slackwater.enforce.settings import Scheduling; said = [];"
        f"applier = Applier(Journal(Path({str(tmp_path / 'journal')!r})), None, said.append);"
        "me = find_thread(os.getpid()); applier.apply('p', [Scheduling(me, 'round-robin', 1)]);"
        "print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, said);"
        "os.setgid(65534); os.setuid(65534); applier.restore();"
        "print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, said)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = done.stdout.splitlines()
    if before != f"{os.SCHED_RR} []":
        pytest.skip(f"no real-time here: {before}")
    assert after == f"{os.SCHED_OTHER} []"


@pytest.mark.usefixtures("may_nice")
def test_what_a_policy_does_not_name_any_more_is_put_back(applier: Applier) -> None:
    with idle_process(2) as busy:
        first, second = busy.threads
        nice = enforce.load("nice", best=-20)
        applier.apply("p", nice.plan([ranked(first, 2), ranked(second, 1)], "linear"))
        assert (nice_of(first), nice_of(second)) == (-20, 19)
        applier.apply("p", nice.plan([ranked(second, 1)], "ratio"))
        assert (nice_of(first), nice_of(second)) == (BASE, -20)
        applier.release("p")
        assert (nice_of(first), nice_of(second)) == (BASE, BASE)


@pytest.mark.usefixtures("may_nice")
def test_what_is_set_already_is_not_set_again(applier: Applier) -> None:
    with idle_process(1) as busy:
        plan = enforce.load("nice", best=-20).plan([ranked(busy.threads[0], 2)], "ratio")
        assert applier.apply("p", plan) == 1
        assert applier.apply("p", plan) == 0


@pytest.mark.usefixtures("may_nice")
def test_a_thread_that_ends_is_passed_over(applier: Applier, complaints: list[str]) -> None:
    with idle_process(1) as busy:
        plan = enforce.load("nice", best=-20).plan([ranked(busy.threads[0], 2)], "ratio")
    assert applier.apply("p", plan) == 0
    assert complaints == []
    assert applier.restore() == 0


@pytest.mark.usefixtures("may_nice")
def test_the_next_process_puts_back_what_a_killed_one_left(tmp_path: Path, groups: Groups) -> None:
    """The journal is all that is left of it."""
    with idle_process(2) as busy:
        path = tmp_path / "of-the-killed"
        before = [groups.place_of(thread) for thread in threads_of(busy.process.pid)]
        killed = Journal(path)
        plan = enforce.load("shares-nice", best=-20).plan(
            [ranked(t, i) for i, t in enumerate(busy.threads)], "linear"
        )
        Applier(killed, groups, pytest.fail).apply("p", plan)
        assert [nice_of(thread) for thread in busy.threads] == [19, -20]
        killed.entries = {
            "left": MadeGroup("left")
        }  # so that closing it leaves the file, as a kill does
        killed.close()

        journal = Journal(path)
        Applier(journal, groups, pytest.fail).restore()
        journal.close()
        assert {nice_of(thread) for thread in threads_of(busy.process.pid)} == {BASE}
        assert [groups.place_of(t) for t in threads_of(busy.process.pid)] == before
        assert not groups.root.exists()
        assert not path.exists()
