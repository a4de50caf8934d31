"""Tickets, what a caller prefers, and the answers that are in memory."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from penstock.serving.http.problems import Problem
from penstock.serving.questions.prefer import Preference, read_preference, read_wait
from penstock.serving.questions.ticket import TICKET_CHARACTERS, Seal, Ticket
from penstock.serving.questions.window import ANSWER_BYTES, Window

SEAL = Seal(b"secret", "bank.door", "checks")
TICKET = Ticket(b"0123456789abcdef", 1_700_000_000.125, 3, 2**40)


def test_a_ticket_is_good_for_its_caller_and_its_questions_alone():
    text = SEAL.seal(TICKET, caller="ann")
    assert len(text) <= TICKET_CHARACTERS
    assert SEAL.open(text, caller="ann") == TICKET
    assert SEAL.open(text, caller="ben") is None
    for other in (Seal(b"other", "bank.door", "checks"), Seal(b"secret", "bank.door", "looks")):
        assert other.open(text, caller="ann") is None


@given(st.integers(0, TICKET_CHARACTERS - 1), st.characters())
def test_a_ticket_that_was_changed_is_none(at, character):
    text = SEAL.seal(TICKET, caller="ann")
    changed = text[:at] + character + text[at + 1 :]
    found = SEAL.open(changed, caller="ann")
    assert found is None or (changed == text and found == TICKET)


@given(st.text(max_size=80))
def test_no_text_of_a_stranger_is_a_ticket(text):
    assert SEAL.open(text, caller="ann") is None


def request(*, prefer=(), query=""):
    headers = [(b"prefer", each.encode()) for each in prefer]
    return Request({"type": "http", "headers": headers, "query_string": query.encode()})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((), Preference(30.0, later=False)),
        (("respond-async",), Preference(0.0, later=True)),
        (("Respond-Async, wait=5",), Preference(5.0, later=True)),
        (("respond-async", "wait=5"), Preference(5.0, later=True)),
        (("wait=100",), Preference(30.0, later=False)),
        (('wait="0"; x=1',), Preference(0.0, later=False)),
        (("wait=soon, handling=lenient",), Preference(30.0, later=False)),
        (("wait=99999999999999999999999999",), Preference(30.0, later=False)),
        (("wait=-1, =, ;;",), Preference(30.0, later=False)),
    ],
)
def test_what_a_caller_prefers_is_read_and_what_is_not_understood_is_left_out(given, wanted):
    assert read_preference(request(prefer=given), most=timedelta(seconds=30)) == wanted


def test_a_wait_is_bounded_and_must_be_a_time():
    most = timedelta(seconds=30)
    assert read_wait(request(), most=most) == 0
    assert read_wait(request(query="wait=2s"), most=most) == 2
    assert read_wait(request(query="wait=2h"), most=most) == 30
    with pytest.raises(Problem, match="wait"):
        read_wait(request(query="wait=soon"), most=most)
    for twice in ("wait=1s&wait=1s", "wait=1s&x=1&wait=2s"):
        with pytest.raises(Problem, match="wait: it is given 2 times"):
            read_wait(request(query=twice), most=most)


def test_of_two_answers_to_one_question_the_first_counts():
    window = Window(most=10_000)
    window.begin({0: 5})
    assert window.add(b"a", 0, 7, b"first")
    assert not window.add(b"a", 0, 9, b"second")
    assert window.get(b"a") == b"first"
    assert window.get(b"b") is None


def test_the_oldest_answers_leave_and_what_is_then_covered_begins_behind_them():
    window = Window(most=2 * ANSWER_BYTES + 10)
    window.begin({0: 5, 1: 0})
    assert window.covers(0, 5)
    assert not window.covers(0, 4)
    for number in range(4):
        window.add(b"%d" % number, 0, 10 + number, b"x")
    assert [window.get(b"%d" % number) for number in range(4)] == [None, None, b"x", b"x"]
    assert not window.covers(0, 11)
    assert window.covers(0, 12)
    assert window.covers(1, 0)
    assert not window.covers(2, 0)
