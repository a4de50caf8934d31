"""What a service that is a class must look like."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import pytest

from penstock import App, Context, State, Timer, Timers, record, ttl
from penstock.core.rules.check import check
from penstock.state import ListState, MapState


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


def problems(definition, *, writes=()):
    app = App("demo")
    app.service(reads=app.stream("readings", Reading), writes=writes, name="watch")(definition)
    return check(app.graph)


@record(key="device")
class Other:
    device: str


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


class NamedByLists:
    def process(self, reading: Reading, seen: MapState[list[int], int]) -> None: ...


class BareState:
    def process(self, reading: Reading, seen: State) -> None: ...


class BareMap:
    def process(self, reading: Reading, seen: MapState) -> None: ...


class SpanBeside:
    def process(self, reading: Reading, seen: Annotated[State[int], "1h"]) -> None: ...


class TtlInside:
    def process(self, reading: Reading, seen: State[Annotated[int, ttl("1h")]]) -> None: ...


class TtlUncalled:
    def process(self, reading: Reading, seen: Annotated[ListState[int], ttl]) -> None: ...


class Variadic:
    def process(self, reading: Reading, *rest) -> None: ...


class TwoRecords:
    def process(self, reading: Reading, seen: State[Reading | Other]) -> None: ...


class OpensAlone:
    def open(self) -> None: ...
    def process(self, reading: Reading) -> None: ...


class ClosesWithMore:
    def process(self, reading: Reading) -> None: ...
    def close(self, why: str) -> None: ...


@pytest.mark.parametrize(
    ("definition", "code", "text"),
    [
        (NoProcess, "service.process", "has no method process"),
        (KeepsAnything, "service.state", "Anything has no form in JSON"),
        (KeepsEither, "service.state", "cannot distinguish the types of Reading | dict"),
        (NamedByLists, "service.state", "as names, which no dict can have"),
        (NeedsArguments, "service.arguments", "cannot be created without arguments"),
        (NoHandler, "service.timers", "uses timers, but has no method on_timer"),
        (WrongTimer, "service.timers", "on_timer does not take a Timer first"),
        (AsksForContext, "service.timers", "a timer is not a record"),
        (TwoTypes, "service.state", "declares the state 'seen' with two types"),
        (SilentTimer, "service.gives", "has no return annotation"),
        (BareState, "service.state", "'seen' does not say what it holds"),
        (BareMap, "service.state", "'seen' does not say what it holds"),
        (SpanBeside, "service.state", "which is not a ttl(...)"),
        (TtlInside, "service.state", "a time to live inside the brackets"),
        (TtlUncalled, "service.state", "which is not a ttl(...)"),
        (Variadic, "service.parameter", "its parameter '*rest"),
        (TwoRecords, "service.state", "cannot distinguish the types of Reading | Other"),
        (OpensAlone, "service.method", "open cannot be called"),
        (ClosesWithMore, "service.method", "close cannot be called"),
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


@pytest.mark.parametrize("definition", [SpanBeside, TtlInside, TtlUncalled])
def test_a_time_to_live_that_would_be_passed_over_is_shown_as_it_is_written(definition):
    (problem,) = problems(definition)
    kind = "ListState" if definition is TtlUncalled else "State"
    assert problem.hint == f'write seen: Annotated[{kind}[...], ttl("1h")]'


def test_another_note_beside_a_state_is_nobodys_business():
    class Noted:
        def process(self, reading: Reading, seen: Annotated[State[int], "how many"]) -> None: ...

    assert problems(Noted) == []


def test_one_that_yields_is_told_how_to_say_so():
    def copy(reading: Reading) -> None:
        yield reading

    app = App("demo")
    app.service(reads=app.stream("readings", Reading), writes=app.stream("copies", Reading))(copy)
    (problem,) = check(app.graph)
    assert problem.hint == "it yields: annotate it with -> Iterator[Reading]"


def test_all_types_of_a_tuple_are_given():
    def copy(reading: Reading) -> tuple[Reading, Other]: ...

    def many(reading: Reading) -> tuple[Reading, ...]: ...

    assert [problem.code for problem in problems(copy)] == ["service.gives", "service.gives"]
    assert [problem.code for problem in problems(many)] == ["service.gives"]


def test_one_that_reads_several_is_told_to_take_all_their_types():
    def watch(reading: Reading) -> Iterator[None]: ...

    app = App("demo")
    app.service(reads=(app.stream("readings", Reading), app.stream("others", Other)))(watch)
    hints = [problem.hint for problem in check(app.graph) if problem.code == "service.takes"]
    assert hints == ["annotate the parameter with Reading | Other, or read another stream"]
