"""A wrong file is one clear line."""

from pathlib import Path

import pytest

from slackwater.core.errors import UsageError
from slackwater.enforce.journal import Journal
from slackwater.operations.middleware.file import load
from slackwater.operations.middleware.loop import Middleware

ENGINE = '[engines.e]\ndriver = "process"\noperators.x.pid = 1\n'
POLICY = '[policies.p]\npolicy = "random-order"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "not valid TOML"),
        ("", "no engines"),
        ("[engines.e]\npid = 1", "'engines.e.driver' is missing"),
        (ENGINE, "no policies"),
        ("[engines.e]\ndriver = 'process'\nlabel = 'f'\n" + POLICY, "leave out 'label'"),
        (ENGINE + POLICY + "perod = 2", "unknown key 'policies.p.perod'; did you mean 'period'?"),
        (ENGINE + POLICY + "period = 0", "'policies.p.period'"),
        (ENGINE + POLICY + "period = 0", "not 0"),
        (ENGINE + POLICY + 'engines = ["f"]', "no engine named 'f'; these are: e"),
        (ENGINE + POLICY + 'queries = "("', "not a regular expression"),
        (ENGINE + "[policies.p]\nperiod = 1", "give either policy or priorities"),
        (ENGINE + "[policies.p]\npriorities = {x = -1}", "priorities must be above zero"),
        ('name = "a/b"\n' + ENGINE + POLICY, "'name'"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "middleware.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ('policy = "queue-sise"', "Did you mean 'queue-size'?"),
        (
            'policy = "queue-size"',
            "cannot give the metric 'queue-size' because 'tuples-in' and 'tuples-out' are missing",
        ),
        ('policy = "random-order"\ntranslator = "nise"', "Did you mean 'nice'?"),
        ('policy = "random-order"\nwhen = "many"', "is no condition"),
        ('policy = "random-order"\nwhen = "load.max > 1"', "cannot give the metric 'load'"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is(
    tmp_path: Path, policy: str, message: str
) -> None:
    path = tmp_path / "middleware.toml"
    path.write_text(f"{ENGINE}[policies.p]\n{policy}\n")
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        Middleware(load(path), Journal(tmp_path / "j"), print)
