"""The trials of connectors find what is wrong with one."""

from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from penstock import App, record
from penstock.connectors import BatchLimits, Item, Row
from penstock.errors import TransientError
from penstock.testing import try_sink, try_source


@dataclass
class Numbers:
    """Numbers in splits; ``fault`` says what is wrong with it."""

    counts: dict[str, int]
    fault: str = ""
    opened: int = 0
    interactive: bool = False
    grows: bool = False

    def describe(self) -> str:
        return "numbers"

    def splits(self) -> list[str]:
        return list(self.counts) * (2 if self.fault == "named twice" else 1)

    def open(self, split: str, position) -> "Reading":
        self.opened += 1
        if self.fault == "away" and self.opened % 2:
            raise TransientError("away", code="connector.away")
        start = 0 if position is None or self.fault == "begins anew" else position
        start += 1 if position is not None and self.fault == "skips" else 0
        return Reading(self, self.counts[split], start)


@dataclass
class Reading:
    source: Numbers
    count: int
    at: int

    @property
    def ended(self) -> bool:
        return self.at >= self.count

    def read(self) -> list[Item]:
        start, self.at = self.at, min(self.at + 7, self.count)
        extra = self.source.opened if self.source.fault == "differs" else 0
        return [Item(n + extra, n) for n in range(start, self.at)]

    def position_after(self, item: Item):
        if self.source.fault == "no JSON":
            return (item.at, item.at)
        return None if self.source.fault == "None" else item.at + 1

    def close(self) -> None: ...


def test_a_source_that_keeps_its_word_passes_and_gives_its_contents():
    assert try_source(Numbers({"a": 20, "b": 5})) == {"a": [*range(20)], "b": [*range(5)]}
    assert try_source(Numbers({"a": 20}, "away")) == {"a": [*range(20)]}


@pytest.mark.parametrize(
    "fault", ["begins anew", "skips", "named twice", "no JSON", "None", "differs"]
)
def test_each_fault_of_a_source_is_found(fault):
    with pytest.raises(AssertionError):
        try_source(Numbers({"a": 60, "b": 30}, fault))


@record()
class Number:
    value: int


@dataclass
class Outside:
    """A list with positions; ``fault`` says what is wrong with it."""

    fault: str = ""
    delivery: str = "exactly_once"
    limits: BatchLimits = field(default_factory=BatchLimits)
    rows: list[Number] = field(default_factory=list)
    written: dict[int, int] = field(default_factory=dict)
    writers: int = 0

    def describe(self) -> str:
        return "a list"

    def open(self, _sink) -> "Outside":
        if self.writers and self.fault != "two at a time":
            raise TransientError("taken", code="sink.taken")
        self.writers += 1
        return self

    def positions(self) -> dict[int, int]:
        return {} if self.fault == "no positions" else self.written

    def write(self, partition: int, rows: list[Row], position: int) -> None:
        kept = rows[1:] if self.fault == "loses" and len(rows) > 5 else rows
        self.rows += [row.record for row in kept]
        self.written[partition] = position

    def close(self) -> None:
        self.writers -= 1

    def clear(self) -> None:
        self.rows, self.written = [], {}


NUMBERS = [Number(n) for n in range(100)]


def tried(outside: Outside) -> None:
    try_sink(outside, NUMBERS, outside=lambda: outside.rows, clear=outside.clear)


def test_a_sink_that_keeps_its_word_passes():
    tried(Outside())
    tried(Outside("no positions", delivery="at_least_once"))


@pytest.mark.parametrize("fault", ["no positions", "loses", "two at a time"])
def test_each_fault_of_a_sink_is_found(fault):
    with pytest.raises(AssertionError):
        tried(Outside(fault))


class Bare:
    """Something that is no connector yet."""

    interactive = False

    def describe(self) -> str:
        return "nothing"

    def open(self, *_) -> "Bare":
        return self


def test_what_a_connector_lacks_is_named_before_it_is_used():
    with pytest.raises(AssertionError, match="Bare has no grows, splits"):
        try_source(Bare())
    with pytest.raises(AssertionError, match="object has no describe, interactive, open"):
        try_source(object())
    with pytest.raises(AssertionError, match="Bare has no delivery, limits"):
        try_sink(Bare(), [], outside=list, clear=list)
    given = Numbers({"a": 3})
    given.open = lambda *_: Bare()
    with pytest.raises(AssertionError, match="Bare has no read, ended, position_after, close"):
        try_source(given)


def test_what_is_no_item_and_what_is_no_json_is_told():
    class Texts(Reading):
        def read(self):
            return ["text"]

    given = Numbers({"a": 3})
    given.open = lambda *_: Texts(given, 3, 0)
    with pytest.raises(AssertionError, match="a str, which is no Item"):
        try_source(given)

    class Objects(Reading):
        def position_after(self, _):
            return object()

    given.open = lambda *_: Objects(given, 3, 0)
    with pytest.raises(AssertionError, match="is no JSON"):
        try_source(given)


def test_a_source_that_only_attaches_is_positioned():
    class Attaching:
        interactive = False

        def describe(self) -> str:
            return "numbers"

        def attach(self):
            return nullcontext(Numbers({"a": 20}))

    assert try_source(Attaching())["a"] == list(range(20))
    app = App("shop")
    source = app.source("in", Attaching(), into=app.stream("kept", Number))
    assert source.positioned
