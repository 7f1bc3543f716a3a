"""Memory management: when it is on, and what it lets run."""

import pytest

from slackwater.core.model import Memory, OperatorMetrics, QueryMetrics
from slackwater.policies import _memory
from slackwater.policies._memory import Pressure, best_operators, operators_now


def test_pressure_ends_when_nothing_more_becomes_free() -> None:
    pressure = Pressure(0.8)
    assert pressure.update(0.0, Memory(90, 100))
    assert pressure.update(_memory.PATIENCE_S - 0.1, Memory(70, 100))  # it falls
    assert pressure.update(_memory.PATIENCE_S + 0.1, Memory(70, 100))
    assert not pressure.update(2 * _memory.PATIENCE_S, Memory(70, 100))
    assert not pressure.update(2 * _memory.PATIENCE_S + 0.1, Memory(75, 100))


def test_in_vain_it_is_tried_less_and_less_often() -> None:
    pressure = Pressure(0.8)
    on = [pressure.update(float(second), Memory(90, 100)) for second in range(200)]
    assert on[0]
    assert sum(on[:20]) > sum(on[40:60]) >= sum(on[-60:-40]) > -1
    assert any(on[100:])
    assert sum(on) < 40


def test_without_a_figure_there_is_no_pressure() -> None:
    assert not Pressure(0.8).update(0.0, None)


def test_a_filter_goes_before_costly_operators_behind_it() -> None:
    cheap_filter = OperatorMetrics(1000.0, 0.1, 1e-6)
    costly = OperatorMetrics(10.0, 0.01, 1e-3)
    freed, count = best_operators((cheap_filter, costly), budget_s=0.01)
    assert (freed, count) == (900.0, 1)


def test_with_time_for_all_the_whole_chain_frees_most() -> None:
    chain = (OperatorMetrics(100.0, 0.5, 1e-6), OperatorMetrics(100.0, 0.1, 1e-6))
    freed, count = best_operators(chain, budget_s=1.0)
    assert count == 2
    assert freed == pytest.approx(50 + 150 * 0.9)


def test_what_came_since_the_last_report_counts() -> None:
    metrics = QueryMetrics(
        batch_start_s=10.0, arrival_rate=100.0, operators=(OperatorMetrics(5.0, 1.0, 1e-6),)
    )
    assert operators_now(metrics, 12.0)[0].queued == 205.0
    assert operators_now(QueryMetrics(), 12.0) == ()
