"""A function's docstring begins with a verb and says what it does.

Properties are read like attributes and may be described by a noun.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import slackwater

SOURCES = Path(slackwater.__file__).parent.parent
VERBS = frozenset(  # grows by need
    """
    Accept Add Admit Announce Answer Apply Ask Begin Bring Build Call Carry Check Choose Clear
    Close Collect Combine Compare Compute Connect Convert Copy Count Create Cut Decide Delete
    Deliver Derive Describe Distrust Divide Do Draw Drop End Escape Estimate Expect Explain Fill
    Find Fit Follow Forget Format Gather Get Give Go Grant Greet Group Hand Handle Have Hear
    Hold Import Improve Insert Install Join Judge Keep Kill Launch Learn Leave Lessen Let Lift
    Limit List Listen Load Lock Look Make Mark Measure Merge Move Name Normalise Note Number
    Offer Open Order Parse Pause Pick Place Plan Plot Poll Post Predict Prepare Print Publish
    Push Put Raise Rank Read Reconnect Record Refine Refuse Register Release Remember Remove
    Render Repeat Replace Report Resample Reset Restart Restore Resume Return Round Run Sample
    Save Say Scale Schedule Send Serve Set Share Shed Show Simulate Skip Sleep Sort Split Start
    Steer Step Stop Store Stretch Sum Summarise Switch Take Tell Test Time Train Translate Try
    Turn Undo Unwrap Update Use Verify Wait Wake Warn Watch Weigh Widen Wrap Write Yield
    """.split()  # noqa: SIM905
)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions that do something when they are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
            if not decorators & {"property", "cached_property"}:
                yield node


def fragments(source: str) -> Iterator[str]:
    """Yield beginnings of docstrings that do not begin with a verb, or do not end as a sentence."""
    for function in functions(ast.parse(source)):
        text = ast.get_docstring(function)
        if text is None:
            continue
        summary = text.split("\n\n")[0]
        word = re.match(r"[A-Za-z]*", summary)
        if word is None or word.group() not in VERBS or summary[-1] not in ".:`":
            yield f"{function.name}: {summary}"


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = {}
    for package in ("slackwater", "slackwater_bench"):
        for path in sorted((SOURCES / package).rglob("*.py")):
            name = path.relative_to(SOURCES).as_posix()
            if wrong := list(fragments(path.read_text())):
                found[name] = wrong
    assert not found, "say what the function does, or add the verb to the list"


def test_a_fragment_is_seen() -> None:
    wrong = 'def f():\n    """To all that have heard nothing for a while."""'
    assert list(fragments(wrong)) == ["f: To all that have heard nothing for a while."]
    assert not list(fragments('def f():\n    """Return what was heard."""'))
