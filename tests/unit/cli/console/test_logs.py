"""The log of a process as it is written."""

import threading

import pytest

from penstock.cli.console.logs import Logs
from penstock.serving.desk.offers import Asked
from penstock.serving.http.problems import Problem


@pytest.fixture
def path(tmp_path):
    return tmp_path / "count.log"


def following(path):
    asked = Asked(path={"name": "count"}, stop=threading.Event())
    return Logs(lambda: {"count": path}).stream(asked), asked.stop


def test_the_last_lines_come_first_then_what_is_written_in_whole_lines(path):
    path.write_text("one\ntwo\nhal")
    events, stop = following(path)
    assert next(events).kind == "log"
    assert next(events).document == ["one", "two"]
    with path.open("a") as file:
        file.write("f\nthree\n")
    assert next(events).document == ["half", "three"]
    stop.set()
    assert list(events) == []


def test_a_log_that_is_put_aside_goes_on_with_its_successor(path):
    path.write_text("one\n")
    events, _ = following(path)
    next(events), next(events)
    path.rename(path.with_suffix(".old"))
    path.write_text("two\n")
    assert next(events).document == ["two"]
    events.close()


def test_one_that_does_not_exist_yet_is_waited_for(path):
    events, _ = following(path)
    next(events)
    writer = threading.Timer(0.1, path.write_text, ["begun\n"])
    writer.start()
    assert next(events).document == ["begun"]
    writer.join()


def test_only_the_end_of_a_long_log_is_shown_and_secrets_and_controls_are_not(path):
    path.write_text("x" * 99 + "\n" + 'password="open" \x1b[2J\n' * 4000)
    events, _ = following(path)
    next(events)
    lines = next(events).document
    assert len(lines) == 1000
    assert "open" not in "".join(lines)
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("name", ["../secrets", "other", ""])
def test_only_the_logs_of_processes_are_to_be_had(path, name):
    with pytest.raises(Problem, match="there is no log"):
        next(Logs(lambda: {"count": path}).stream(Asked(path={"name": name})))
