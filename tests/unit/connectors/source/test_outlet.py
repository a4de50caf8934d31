from datetime import UTC, datetime

import pytest

from penstock import App, record
from penstock.connectors import keyboard
from penstock.connectors.connector import WHOLE, Item
from penstock.connectors.lines import Line
from penstock.connectors.source.outlet import Outcome, Outlet

NOW_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="word")
class Word:
    word: str


@record()
class Text:
    text: str


class ListProducer:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[dict[str, object]] = []

    def send(self, topic, *, key, value, headers=(), partition=None):
        self.sent.append(
            {"topic": topic, "key": key, "value": value, "headers": headers, "partition": partition}
        )


@pytest.fixture
def producer() -> ListProducer:
    return ListProducer()


def outlet(producer: ListProducer, record_type: type, parse, **options) -> Outlet:
    app = App("shop")
    stream = app.stream("in", record_type, **options)
    source = app.source("typed", keyboard(), into=stream, parse=parse)
    return Outlet(app.graph, source, producer, now=lambda: NOW_AT)


def write(to: Outlet, item: Item, *, at: int, split: str = WHOLE) -> Outcome:
    return to.send(item, to.make(item), at=at, split=split)


def line(text: str) -> Line:
    return Line(text.encode(), 0, len(text) + 1, len(text))


def test_a_keyed_record_goes_where_its_key_says(producer):
    assert write(outlet(producer, Word, Word), line("water"), at=0) == "passed"
    (sent,) = producer.sent
    assert (sent["topic"], sent["key"], sent["partition"]) == ("in", b"water", None)


def test_records_by_turns_go_round_the_declared_partitions(producer):
    turns = outlet(producer, Text, Text, partitions=3)
    for number in range(5):
        write(turns, line(str(number)), at=number)
    assert [sent["partition"] for sent in producer.sent] == [0, 1, 2, 0, 1]


def test_a_skipped_line_is_not_sent(producer):
    assert write(outlet(producer, Text, lambda _: None), line("x"), at=0) == "filtered"
    assert producer.sent == []


def test_a_line_that_is_no_record_becomes_a_dead_letter_with_reason_and_place(producer):
    assert write(outlet(producer, Word, int), line("many"), at=77) == "dead_lettered"
    (sent,) = producer.sent
    assert (sent["topic"], sent["key"], sent["value"]) == ("shop.dead-letters", None, b"many")
    headers = {name: value.decode() for name, value in sent["headers"]}
    assert headers.pop("penstock.reason").startswith("parse raised ValueError: invalid literal")
    assert headers == {
        "penstock.code": "user.raised",
        "penstock.topic": "source:typed",
        "penstock.partition": "0",
        "penstock.offset": "77",
        "penstock.part": "typed",
        "penstock.at": "2026-01-01T12:00:00+00:00",
    }


def test_a_dead_letter_of_a_split_names_the_split(producer):
    write(outlet(producer, Word, int), line("many"), at=7, split="2026/may")
    headers = dict(producer.sent[0]["headers"])
    assert headers["penstock.topic"] == b"source:typed/2026/may"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ({"word": 1}, b'{"word":1}'),
        (Word(1), b'{"word":1}'),
        (object(), b"a object, which cannot be shown as JSON"),
    ],
)
def test_what_is_no_record_and_no_bytes_is_a_dead_letter_that_can_be_read(producer, content, value):
    assert write(outlet(producer, Word, None), Item(content), at=0) == "dead_lettered"
    assert producer.sent[0]["value"] == value
