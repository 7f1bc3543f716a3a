"""What does not fit is refused where it comes in, and nothing has changed then."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.core.model import Snapshot
from slackwater.engines.spark.control.driver import QueryStore
from slackwater.ipc.framing import ProtocolError, encode
from slackwater.ipc.messages import FromGate, Gone, read_from_controller
from slackwater.ipc.questions import read_from_gate, read_question
from slackwater.ipc.server import Client
from slackwater.policies import load
from tests.golden.scripted import SCRIPT, START_S

MESSAGES = [json.loads(encode(message)) for _, each in SCRIPT for message in each]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([10**400, -(2**63), 1e308, 5e-324, "", "\ud800", "9999-12-31T23:59:59Z"])
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a message, as the keys that lead there."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    return [path, *(found for key in keys for found in places(value[key], (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A message that fits, with something in it changed, taken out or put in."""
    message = copy.deepcopy(draw(st.sampled_from(MESSAGES)))
    for _ in range(draw(st.integers(1, 3))):
        inside = [place for place in places(message) if place]
        if not inside:
            break
        *path, last = draw(st.sampled_from(inside))
        inner = message
        for key in path:
            inner = inner[key]
        if draw(st.booleans()):
            del inner[last]
        else:
            inner[last] = draw(JSON)
    return message


def shown(store: QueryStore) -> object:
    queries = {name: (query.state, query.seq) for name, query in store.queries.items()}
    return queries, store.memory, store.notes, store.recent.last


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(None)  # type: ignore[arg-type]


@given(line=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(deadline=None, max_examples=200)
def test_no_line_raises_anything_but_the_protocol_error(line: bytes) -> None:
    for read in (read_from_gate, read_from_controller, read_question):
        with pytest.raises(ProtocolError):
            read(line)


@given(message=mutated())
@settings(deadline=None, max_examples=250)
def test_a_changed_message_is_refused_or_taken_whole(client: Client, message: Any) -> None:
    """And what was taken, a policy can decide with."""
    store = QueryStore()
    for said in (each for _, script in SCRIPT for each in script):
        if isinstance(said, FromGate) and not isinstance(said, Gone):
            store.hear(said, client, START_S)
    before = shown(store)
    try:
        found = read_from_gate(json.dumps(message).encode())
    except ProtocolError:
        assert shown(store) == before
        return
    if isinstance(found, FromGate):
        store.hear(found, client, START_S + 10)
    states = tuple(query.state for query in store.queries.values())
    load("klink").decide(Snapshot(START_S + 10, 1, states, store.memory))


@pytest.mark.parametrize("depth", [100, 100_000])
def test_a_deep_message_is_refused(depth: int) -> None:
    with pytest.raises(ProtocolError):
        read_from_gate(b'{"op":"done","query":' + b"[" * depth)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"op":"arrive","query":"a"}', "missing required field `seq`"),
        (b'{"op":"dance"}', "Invalid value 'dance'"),
        (b'{"op":"ask","what":"decisions","last":"x"}', "last"),
        (b'{"op":"progress","query":"a","progress":{}}', "progress"),
    ],
)
def test_it_is_said_what_did_not_fit(line: bytes, what: str) -> None:
    with pytest.raises(ProtocolError, match=what):
        read_from_gate(line)


def test_a_newer_peer_may_say_more() -> None:
    found = read_from_gate(b'{"op":"gone","query":"a","because":"it was done"}')
    assert found == Gone("a")
