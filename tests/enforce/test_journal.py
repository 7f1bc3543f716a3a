"""The journal outlives its process and never lets two of them act at once."""

from pathlib import Path

import pytest

from slackwater.common.procfs import find_thread
from slackwater.core.errors import UsageError
from slackwater.enforce.journal import ROOM, Journal, NiceValue, still_there


def test_the_first_word_on_a_thread_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    thread = find_thread(1)
    assert thread is not None
    journal.record(NiceValue(*thread, 5))
    journal.record(NiceValue(*thread, -20))
    (entry,) = journal.entries.values()
    assert entry == NiceValue(*thread, 5)
    assert still_there(entry)


def test_it_is_read_again_also_when_its_last_line_is_cut_off(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    thread = find_thread(1)
    assert thread is not None
    journal.record(NiceValue(*thread, 5))
    journal.close()
    with (tmp_path / "j").open("a") as file:
        file.write('{"kind":"nice","pid":1,"ti')
    again = Journal(tmp_path / "j")
    assert list(again.entries.values()) == [NiceValue(*thread, 5)]


def test_a_thread_with_the_same_number_but_another_start_is_another(tmp_path: Path) -> None:
    thread = find_thread(1)
    assert thread is not None
    assert not still_there(NiceValue(*thread._replace(started=thread.started + 1), 5))


def test_only_one_holds_it(tmp_path: Path) -> None:
    first = Journal(tmp_path / "j")
    with pytest.raises(UsageError, match="a middleware runs already"):
        Journal(tmp_path / "j")
    first.close()
    Journal(tmp_path / "j").close()


def test_an_empty_one_leaves_no_file(tmp_path: Path) -> None:
    Journal(tmp_path / "j").close()
    assert not (tmp_path / "j").exists()


def test_what_was_forgotten_is_not_done_by_the_next_process(tmp_path: Path) -> None:
    """Also when the process is killed, and the file does not grow for ever."""
    journal = Journal(tmp_path / "j")
    thread = find_thread(1)
    assert thread is not None
    kept = NiceValue(*thread, 5)
    journal.record(kept)
    for number in range(2 * ROOM):
        passing = NiceValue(*thread._replace(tid=number + 2), 0)
        journal.record(passing)
        journal.forget(passing)
    assert len((tmp_path / "j").read_text().splitlines()) <= ROOM + 3
    journal.close()
    assert list(Journal(tmp_path / "j").entries.values()) == [kept]


def test_what_another_version_wrote_is_passed_over(tmp_path: Path) -> None:
    thread = find_thread(1)
    assert thread is not None
    lines = [
        '{"kind":"colour","pid":1,"tid":1,"started":3}',
        '{"kind":"nice","pid":1,"tid":1,"started":"soon","value":5}',
        f'{{"kind":"nice","pid":1,"tid":1,"started":{thread.started},"value":5}}',
        "[]",
    ]
    (tmp_path / "j").write_text("\n".join(lines))
    assert list(Journal(tmp_path / "j").entries.values()) == [NiceValue(*thread, 5)]
