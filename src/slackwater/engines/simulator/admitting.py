"""What simulated engines refuse of a policy."""

from slackwater.core.errors import EngineError
from slackwater.core.model import QueryState


def refuse_not_waiting(name: str, state: QueryState | None) -> None:
    """Refuse an admission that cannot be followed; None: there is no such query."""
    if state is None:
        raise EngineError(f"the policy admits {name!r}, which is no query of this fleet")
    if state.phase != "waiting":
        raise EngineError(
            f"the policy admits {name!r}, which is {state.phase}; only those that wait can be, "
            "each once"
        )
