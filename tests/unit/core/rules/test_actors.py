"""What a class must look like whose objects are actors."""

import pytest

from penstock import App, State, Timer, record
from penstock.core.rules.check import check


@record(key="device")
class Reading:
    device: str


@record(key="device")
class Ack:
    device: str


def problems(definition):
    app = App("demo")
    reads = (app.stream("readings", Reading), app.stream("acks", Ack))
    app.actor(reads=reads, name="boiler")(definition)
    return [(each.code, each.message) for each in check(app.graph)]


class Right:
    seen: int = 0
    names: list[str] = []  # noqa: RUF012 - every actor gets its own

    def receive(self, reading: Reading) -> None: ...
    def receive_ack(self, ack: Ack, last: State[int]) -> None: ...
    def on_timer(self, timer: Timer) -> None: ...


class Either:
    def receive(self, message: Reading | Ack) -> None: ...


class NoValue(Right):
    seen_last: str


class WrongValue(Right):
    seen_last: int = "never"


class Twice(Right):
    def receive_again(self, ack: Ack) -> None: ...


class Processes(Right):
    def process(self, reading: Reading) -> None: ...


class Opens(Right):
    def open(self, opening) -> None: ...


class NeedsArguments(Right):
    def __init__(self, limit: int) -> None: ...


class Unkeepable(Right):
    code: complex | None = None


class OnlyReadings:
    def receive(self, reading: Reading) -> None: ...


class Nothing:
    def take(self, reading: Reading) -> None: ...


class NoReturn:
    def receive(self, message: Reading | Ack): ...


@pytest.mark.parametrize("definition", [Right, Either])
def test_a_class_with_methods_that_receive_is_an_actor(definition):
    assert problems(definition) == []


@pytest.mark.parametrize(
    ("definition", "code", "text"),
    [
        (NoValue, "actor.class", "actor 'boiler' has a field 'seen_last' without a first value"),
        (WrongValue, "actor.class", "'seen_last' whose first value cannot be kept"),
        (Twice, "actor.class", "receives Ack in receive_ack and in receive_again"),
        (Processes, "actor.class", "has a method process, which nobody calls"),
        (Opens, "actor.class", "has a method open, which nobody calls"),
        (NeedsArguments, "service.arguments", "cannot be created without arguments"),
        (Unkeepable, "actor.class", "field 'code' that cannot be kept: complex | None has no form"),
        (
            OnlyReadings,
            "service.takes",
            "actor 'boiler' takes Reading, but stream 'acks' holds Ack",
        ),
        (Nothing, "actor.class", "actor 'boiler' receives nothing"),
        (NoReturn, "service.gives", "actor 'boiler' has no return annotation"),
        (print, "actor.class", "actor 'boiler' is not a class"),
    ],
)
def test_what_is_wrong_with_a_class_is_said(definition, code, text):
    found = problems(definition)
    assert [each for each, _ in found] == [code]
    assert text in found[0][1]


def test_an_option_that_is_no_span_is_a_problem():
    app = App("demo")
    app.actor(reads=app.stream("readings", Reading), idle_after="soon")(OnlyReadings)
    assert [each.code for each in check(app.graph)] == ["data.option"]
