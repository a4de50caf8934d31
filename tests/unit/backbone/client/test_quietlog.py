import logging

import pytest

from penstock.backbone.client.contact import LOG
from penstock.backbone.client.quietlog import INTERVAL_SECONDS, MAX_TEXTS, Seldom

REFUSED = "FAIL [%s] Connect to %s failed: Connection refused (after %sms in state CONNECT)"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def written(clock):
    """What a log writes; it is called with a text and its arguments."""
    seldom, lines = Seldom(clock=clock), []

    def log(text, *arguments):
        record = logging.LogRecord("kafka", logging.ERROR, "", 0, text, arguments, None)
        if seldom.filter(record):
            lines.append(record.getMessage())
        return lines

    return log


def test_the_same_text_is_written_once_whichever_client_says_it_and_however_long_it_took(written):
    for number in range(100):
        written(REFUSED, f"penstock#producer-{number}", "a:9092", number)
    lines = written(REFUSED, "penstock#consumer-1", "a:9092", 7)
    assert len(lines) == 1


def test_another_text_is_written_too(written):
    written(REFUSED, "penstock#producer-1", "a:9092", 0)
    assert len(written(REFUSED, "penstock#producer-1", "a:9093", 0)) == 2


def test_after_a_while_it_is_written_again_with_how_many_were_left_out(written, clock):
    for _ in range(4):
        written("down")
    clock.now += INTERVAL_SECONDS
    assert written("down") == ["down", "down (3 more like it since then)"]


def test_no_more_texts_are_remembered_than_it_may(written):
    for number in range(MAX_TEXTS + 1):
        written(f"text {number}")
    assert written("text 0").count("text 0") == 2
    assert written(f"text {MAX_TEXTS}").count(f"text {MAX_TEXTS}") == 1


def test_the_log_of_every_client_is_such_a_log():
    assert any(isinstance(each, Seldom) for each in LOG.filters)
