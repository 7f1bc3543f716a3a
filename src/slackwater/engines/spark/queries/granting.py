"""Lets queries go on when the controller says so: how much they read, with which watermark."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor

from slackwater.core.protocols import Clock
from slackwater.engines.spark.queries.held import GoneOn, Held, TooEarly
from slackwater.engines.spark.queries.held_runs import HeldRuns
from slackwater.engines.spark.queries.record import QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.sources.row_limits import RowLimits
from slackwater.ipc.messages import Grant

log = logging.getLogger("slackwater.fleet")


class Granter:
    """Carries out grants.

    Parameters
    ----------
    row_limits
        Where grants leave their row limits for our sources.
    askers
        Asks frontiers that take their time: they must not hold up the grants of others.
    wait_on
        Called with a query that was let go on too early, and waits on.
    """

    def __init__(
        self,
        held: HeldRuns,
        registry: Registry,
        row_limits: RowLimits,
        askers: Executor,
        wait_on: Callable[[str, Held], None],
        clock: Clock,
    ) -> None:
        self._held = held
        self._registry = registry
        self._row_limits = row_limits
        self._askers = askers
        self._wait_on = wait_on
        self._clock = clock

    def grant(self, record: QueryRecord, grant: Grant) -> None:
        """Let a query go on, unless that trigger has gone on without its grant."""
        held = self._held.take_grant(record.run, grant)
        if held is None:
            return
        raises = held.raises
        if raises is not None and raises.takes_time:
            self._askers.submit(self._let_go_on_later, record, held, grant)
        else:
            self.let_go_on(record, held, grant)

    def let_go_on(self, record: QueryRecord, held: Held, grant: Grant) -> None:
        """Let a query go on, with its watermark raised as far as it can be."""
        why_not = None
        try:
            with held.turn:
                # Limits come first: a batch with a raised watermark must read all there is.
                held.reads = grant.rows != 0
                held.limit_rows(grant.rows, self._clock)
                self._row_limits.set_rows(grant.query, grant.rows)
                try:
                    held.raise_watermark(grant, self._clock)
                except TooEarly:
                    raise
                except GoneOn:
                    log.debug("%s may have gone on before its grant", grant.query)
                    if held.seq != grant.seq:  # it has, and is back
                        return
                    # It may only be about to wait: its next arrival throws away what comes late.
                except Exception as error:  # then Spark moves it, as ever
                    held.leave_to_spark()
                    why_not = str(error)
                why_not = why_not or held.take_lost()
                held.granted_s = self._clock.monotonic()
                held.gate.grant()
        except TooEarly:
            self._wait_on(grant.query, held)
        if why_not is not None:  # not within the turn: who follows changes may wait for it
            log.warning("the watermark of %s is left to Spark: %s", record.name, why_not)
            self._registry.update(
                record.name, run=record.run, one_batch=False, why_two_batches=why_not
            )

    def _let_go_on_later(self, record: QueryRecord, held: Held, grant: Grant) -> None:
        try:
            self.let_go_on(record, held, grant)
        except Exception:  # of a pool's thread nobody else would hear it
            log.exception("%s could not be let go on; its gate opens by itself", record.name)
