"""What a service that is a class must look like."""

from datetime import datetime

import pytest

from penstock import App, Context, MapState, State, Timer, Timers, record
from penstock.core.check import check


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


def problems(definition, *, writes=()):
    app = App("demo")
    app.service(reads=app.stream("readings", Reading), writes=writes, name="watch")(definition)
    return check(app.graph)


class Right:
    def process(self, reading: Reading, seen: State[int], timers: Timers) -> None: ...
    def on_timer(self, timer: Timer, seen: State[int]) -> None: ...


@pytest.mark.parametrize("definition", [Right, Right()])
def test_a_class_and_an_object_of_it_are_services(definition):
    assert problems(definition) == []


def test_its_states_are_those_of_both_methods():
    class Two:
        def process(self, reading: Reading, seen: State[int]) -> None: ...
        def on_timer(self, timer: Timer, seen: State[int], rang: State[bool]) -> None: ...

    app = App("demo")
    service = app.service(reads=app.stream("readings", Reading))(Two)
    assert [spec.name for spec in service.states] == ["seen", "rang"]
    assert (service.name, service.timed) == ("Two", True)


class NoProcess:
    def on_timer(self, timer: Timer) -> None: ...


class NeedsArguments:
    def __init__(self, limit: int) -> None: ...
    def process(self, reading: Reading) -> None: ...


class NoHandler:
    def process(self, reading: Reading, timers: Timers) -> None: ...


class WrongTimer:
    def process(self, reading: Reading) -> None: ...
    def on_timer(self, key: str) -> None: ...


class AsksForContext:
    def process(self, reading: Reading) -> None: ...
    def on_timer(self, timer: Timer, context: Context) -> None: ...


class TwoTypes:
    def process(self, reading: Reading, seen: State[int]) -> None: ...
    def on_timer(self, timer: Timer, seen: State[str]) -> None: ...


class SilentTimer:
    def process(self, reading: Reading) -> None: ...
    def on_timer(self, timer: Timer): ...


class Anything: ...


class KeepsAnything:
    def process(self, reading: Reading, seen: State[Anything]) -> None: ...


class KeepsEither:
    def process(self, reading: Reading, seen: MapState[str, Reading | dict[str, int]]) -> None: ...


@pytest.mark.parametrize(
    ("definition", "code", "text"),
    [
        (NoProcess, "service.process", "has no method process"),
        (KeepsAnything, "service.state", "Anything is nothing that JSON has"),
        (KeepsEither, "service.state", "more than one dict-like type"),
        (NeedsArguments, "service.arguments", "cannot be made without arguments"),
        (NoHandler, "service.timers", "sets timers and has no method on_timer"),
        (WrongTimer, "service.timers", "on_timer does not take a Timer first"),
        (AsksForContext, "service.timers", "a timer is no record"),
        (TwoTypes, "service.state", "declares the state 'seen' in two ways"),
        (SilentTimer, "service.gives", "does not say what it gives"),
    ],
)
def test_what_is_wrong_with_a_class_is_said(definition, code, text):
    (problem,) = problems(definition)
    assert problem.code == code
    assert text in problem.message
    assert problem.place is not None
    assert problem.place.file == __file__


def test_timers_need_a_key():
    @record(time="at")
    class Keyless:
        at: datetime

    class Watch:
        def process(self, reading: Keyless) -> None: ...
        def on_timer(self, timer: Timer) -> None: ...

    app = App("demo")
    app.service(reads=app.stream("readings", Keyless))(Watch)
    assert [problem.code for problem in check(app.graph)] == ["service.no-key"]
