"""Options of declarations given as something else: a problem in words, never an error from inside.

Long because every declaration of the public API is here with its options.
"""

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import (
    App,
    EventTime,
    State,
    aggregates,
    on_error,
    record,
    retry,
    triggers,
    ttl,
    windows,
)
from penstock.connectors import json_files, keyboard, tcp_lines, text_file
from penstock.core.rules.check import check, verified
from penstock.errors import Problem
from penstock.windows import fixed


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


class Odd:
    """Nothing that any option takes."""

    def __repr__(self) -> str:
        return "Odd()"


class Longest:
    """A combiner of the author's own."""

    def zero(self) -> int:
        return 0

    def add(self, held: int, value: str | None) -> int:
        return max(held, len(value or ""))

    def merge(self, held: int, other: int) -> int:
        return max(held, other)

    def result(self, held: int) -> int:
        return held


WRONG = (
    5,
    -1,
    0,
    2.5,
    True,
    None,
    "",
    "nonsense",
    "5s",
    b"raw",
    (),
    [],
    {},
    (5,),
    [[]],
    Odd(),
    Odd,
    len,
)


def services(app: App) -> dict[str, Any]:
    readings = app.stream("readings", Reading)
    return {"reads": readings, "writes": app.stream("copies", Reading)}


def copy(reading: Reading) -> Reading:
    return reading


async def copy_later(reading: Reading) -> Reading:
    return reading


def declare_window(app: App, **options: Any) -> None:
    stream, given = app.stream("readings", Reading), {"windows": fixed("1m"), "by": "device"}
    aggregation = stream.window(**(given | options)).aggregate(n=aggregates.count())
    app.stream("panes", aggregation)


def aggregated(app: App, *, trigger: Any = None, **named: Any) -> None:
    windowed = app.stream("readings", Reading).window(fixed("1m"), by="device")
    windowed = windowed if trigger is None else windowed.trigger(trigger)
    app.table("panes", windowed.aggregate(**(named or {"n": aggregates.count()})))


def accumulated(app: App, mode: Any = "accumulating", **options: Any) -> None:
    windowed = app.stream("readings", Reading).window(fixed("1m"), by="device")
    app.stream("panes", windowed.accumulate(mode, **options).aggregate(n=aggregates.count()))


def selected(app: App, *, condition: Any = "celsius > 0", field: Any = "device") -> None:
    chosen = app.stream("readings", Reading).where(condition).select(device=field)
    app.stream("panes", chosen.window(fixed("1m"), by="device").aggregate(n=aggregates.count()))


def of_record(app: App, **options: Any) -> None:
    @record(**({"key": "device"} | options))
    class Other:
        device: str

    app.stream("others", Other)


def over_windows(make: Callable[..., Any]) -> Callable[..., None]:
    return lambda app, **options: declare_window(app, windows=make(**options), by="device")


def over_trigger(make: Callable[..., Any], *names: str) -> Callable[..., None]:
    """Declare with a trigger, whose positional arguments come under these names."""

    def declare(app: App, **options: Any) -> None:
        given = [options.pop(name) for name in names]
        aggregated(app, trigger=make(*given, **options))

    return declare


def over_aggregate(make: Callable[..., Any]) -> Callable[..., None]:
    return lambda app, **options: aggregated(app, value=make(**options))


def serve(app: App, *, function: Any = copy, **options: Any) -> None:
    app.service(**(services(app) | options))(function)


def serve_later(app: App, **options: Any) -> None:
    serve(app, function=copy_later, **options)


def serve_with(app: App, **options: Any) -> None:
    serve(app, errors=on_error(**options))


def serve_again(app: App, **options: Any) -> None:
    serve(app, errors=on_error(process=retry(**({"times": 3} | options))))


def remember(app: App, span: Any = "1h") -> None:
    def keep(reading: Reading, last: Annotated[State[float], ttl(span)]) -> Reading: ...

    serve(app, function=keep)


def unchanged(frame: Any) -> Any:
    return frame


def pipe(app: App, *, function: Any = unchanged, **options: Any) -> None:
    app.pipeline(**(services(app) | options))(function)


def bring(app: App, **options: Any) -> None:
    stream = app.stream("readings", Reading)
    app.source(**({"name": "in", "connector": keyboard(), "into": stream} | options))


def sink(app: App, **options: Any) -> None:
    stream = app.stream("readings", Reading)
    app.sink(**({"name": "out", "connector": json_files("out"), "reads": stream} | options))


def lake(app: App, **options: Any) -> None:
    app.lake(**({"name": "kept", "record": Reading} | options))


def archive(app: App, **options: Any) -> None:
    app.archive(**({"stream": app.stream("readings", Reading)} | options))


def stream(app: App, **options: Any) -> None:
    app.stream(**({"name": "readings", "record": Reading} | options))


def timed(app: App, **options: Any) -> None:
    stream(app, event_time=EventTime(**options))


def table(app: App, **options: Any) -> None:
    app.table(**({"name": "readings", "record": Reading} | options))


def sourced(make: Callable[..., Any]) -> Callable[..., None]:
    return lambda app, **options: bring(app, connector=make(**options))


def names(declared: Any) -> list[str]:
    return [name for name in inspect.signature(declared).parameters if name != "self"]


OPTIONS: dict[Callable[..., None], list[str]] = {
    stream: names(App.stream),
    timed: names(EventTime),
    table: names(App.table),
    lake: names(App.lake),
    archive: names(App.archive),
    bring: names(App.source),
    sink: names(App.sink),
    pipe: [*names(App.pipeline), "function"],
    serve: [*names(App.service), "function"],
    serve_later: names(App.service),
    serve_with: names(on_error),
    serve_again: names(retry),
    remember: ["span"],
    of_record: names(record),
    declare_window: ["windows", "by", "lateness", "time"],
    accumulated: ["mode", "stamp", "final_pane", "on_time_pane"],
    selected: ["condition", "field"],
    aggregated: ["trigger", "value"],
}
COMPOSED: list[tuple[str, Callable[..., None], dict[str, Any]]] = [
    ("fixed", over_windows(windows.fixed), {"size": "1m", "offset": "0s"}),
    ("sliding", over_windows(windows.sliding), {"size": "1m", "every": "10s"}),
    ("sessions", over_windows(windows.sessions), {"gap": "1m"}),
    ("counted", over_windows(windows.counted), {"size": 3}),
    ("after_count", over_trigger(triggers.after_count), {"count": 1}),
    ("after_delay", over_trigger(triggers.after_delay), {"span": "1s"}),
    ("every", over_trigger(triggers.every), {"span": "1s"}),
    ("every_record", over_trigger(triggers.every_record), {"count": 1}),
    ("on_watermark", over_trigger(triggers.on_watermark), {"early": None, "late": None}),
    ("repeat", over_trigger(triggers.repeat), {"trigger": triggers.never()}),
    ("any_of", over_trigger(triggers.any_of, "one"), {"one": triggers.never()}),
    ("all_of", over_trigger(triggers.all_of, "one"), {"one": triggers.never()}),
    ("in_order", over_trigger(triggers.in_order, "one"), {"one": triggers.never()}),
    ("until", over_trigger(triggers.until), {"trigger": triggers.never(), "end": triggers.never()}),
    ("count", over_aggregate(aggregates.count), {"of": "celsius"}),
    ("total", over_aggregate(aggregates.total), {"of": "celsius"}),
    (
        "quantile",
        over_aggregate(aggregates.quantile),
        {"of": "celsius", "share": 0.5, "error": 0.1},
    ),
    ("top", over_aggregate(aggregates.top), {"of": "celsius", "n": 3}),
    (
        "combine",
        over_aggregate(aggregates.combine),
        {"of": "device", "combiner": Longest(), "gives": int},
    ),
    ("micro_batch", lambda app, **o: pipe(app, trigger=penstock.micro_batch(**o)), {"every": "1s"}),
    (
        "real_time",
        lambda app, **o: pipe(app, trigger=penstock.real_time(**o)),
        {"checkpoint_every": "1s"},
    ),
    ("day", lambda app, **o: lake(app, partition_by=penstock.day(**o)), {"field": "at"}),
    ("feedback", lambda app, **o: serve(app, writes=penstock.feedback(**o)), {"data": None}),
    ("keyboard", sourced(keyboard), {"max_line": "1KiB"}),
    (
        "json_files",
        lambda app, **o: sink(app, connector=json_files(**o)),
        {"directory": "out", "every": "1m", "size": "1MiB"},
    ),
    ("text_file", sourced(text_file), {"path": "x", "rate": 1, "max_line": "1KiB"}),
    (
        "tcp_lines",
        sourced(tcp_lines),
        {"host": "127.0.0.1", "port": 0, "max_line": 9, "max_connections": 1, "line_timeout": "1s"},
    ),
]
CASES = [
    *((declare, {}, option) for declare, options in OPTIONS.items() for option in options),
    *((declare, right, option) for _, declare, right in COMPOSED for option in right),
]
IDS = [
    *(f"{declare.__name__}-{option}" for declare, options in OPTIONS.items() for option in options),
    *(f"{name}-{option}" for name, _, right in COMPOSED for option in right),
]


def problems_of(declare: Callable[..., None], options: dict[str, Any]) -> list[Problem]:
    """Declare, check, and use what was found right; return the problems."""
    app = App("demo")
    declare(app, **options)
    graph = app.graph
    found = check(graph)
    if not found:
        assert graph == verified(graph)
        assert [topic.config() for topic in graph.topics()]
        assert all(edge.start and edge.end for edge in graph.edges())
    return found


@pytest.mark.parametrize(("declare", "right", "option"), CASES, ids=IDS)
def test_an_option_of_a_wrong_type_is_a_problem_and_no_error(declare, right, option):
    for wrong in WRONG:
        for problem in problems_of(declare, right | {option: wrong}):
            assert "object has no attribute" not in str(problem)
            assert "Error" not in problem.message
            assert problem.place is not None
            assert problem.place.file == __file__


@pytest.mark.parametrize(("declare", "right", "option"), CASES, ids=IDS)
def test_what_no_option_takes_is_refused_by_each(declare, right, option):
    assert problems_of(declare, right | {option: Odd()})


RIGHT = [each for each in COMPOSED if each[0] != "feedback"]


@pytest.mark.parametrize(("name", "declare", "right"), RIGHT, ids=[name for name, *_ in RIGHT])
def test_the_words_of_a_declaration_are_right_as_they_are_shown_here(name, declare, right):
    assert problems_of(declare, right) == []


@given(
    case=st.sampled_from(CASES),
    wrong=st.one_of(
        st.text(), st.integers(), st.floats(), st.binary(), st.timedeltas(), st.lists(st.text())
    ),
)
@settings(max_examples=3 * settings().max_examples)
def test_whatever_is_given_is_refused_in_words_or_usable(case, wrong):
    declare, right, option = case
    for problem in problems_of(declare, right | {option: wrong}):
        assert problem.message
        assert "object has no attribute" not in str(problem)


SAID = {
    "stream-retention": (stream, {"retention": 7}, "retention: 7 has no unit"),
    "stream-partitions": (stream, {"partitions": "3"}, "partitions: '3' is not a whole number"),
    "stream-on": (stream, {"on": "service"}, "on: there is no 'service'"),
    "stream-event-time": (stream, {"event_time": "30s"}, "event_time: '30s' is not an EventTime"),
    "event-time-negative": (timed, {"disorder": timedelta(-1)}, "disorder: datetime.timedelta"),
    "event-time-span": (timed, {"closes_after": 600}, "event_time.closes_after: 600 has no unit"),
    "event-time-follows": (timed, {"follows": "newst"}, "follows: there is no 'newst'"),
    "stream-name": (stream, {"name": 5}, "name: 5 is not a text"),
    "stream-record": (stream, {"record": int}, "int is not a record type"),
    "service-errors": (
        serve,
        {"errors": "stop"},
        "errors: 'stop' does not say which failures it is for",
    ),
    "service-retry": (serve, {"errors": retry(3)}, "errors: retry(...) does not say"),
    "service-name": (serve, {"name": 5}, "name: 5 is not a text"),
    "service-timeout": (serve_later, {"timeout": 5}, "timeout: 5 has no unit"),
    "service-concurrency": (serve_later, {"concurrency": "ten"}, "'ten' is not a whole number"),
    "retry-first": (serve_again, {"first": "10"}, "first: '10' is not a duration"),
    "retry-times": (serve_again, {"times": "3"}, "retry('3')"),
    "retry-waits": (serve_again, {"first": "1m", "longest": "1s"}, "shorter than the first"),
    "ttl": (remember, {"span": "an hour"}, "ttl: 'an hour' is not a duration"),
    "ttl-nothing": (remember, {"span": "0s"}, "is not a time to live"),
    "ttl-endless": (remember, {"span": "4000000d"}, "is longer than 365000d"),
    "pipeline-trigger": (pipe, {"trigger": "10s"}, "trigger: '10s' is not a trigger"),
    "pipeline-output": (pipe, {"output": "apend"}, "output: there is no 'apend'"),
    "windows": (declare_window, {"windows": "1m"}, "'1m' is not a kind of window"),
    "time": (declare_window, {"windows": fixed("1m"), "time": "evnt"}, "there is no 'evnt'"),
    "trigger": (aggregated, {"trigger": "5s"}, "'5s' is not a trigger"),
    "aggregate": (aggregated, {"value": "celsius"}, "value: 'celsius' is not an aggregate"),
    "mode": (accumulated, {"mode": "retract"}, "mode: there is no 'retract'"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_wrong_is_said_with_what_to_write_instead(case):
    declare, options, text = SAID[case]
    problems = problems_of(declare, options)
    (problem,) = [problem for problem in problems if text in problem.message]
    assert problem.hint or "write" in problem.message or "a text like" in problem.message


def test_streams_may_be_listed_as_well_as_in_a_tuple():
    app = App("demo")
    one, two = app.stream("one", Reading), app.stream("two", Reading)

    @app.service(reads=[one, two], writes=[app.stream("copies", Reading)])
    def watch(reading: Reading) -> Reading: ...

    assert check(app.graph) == []
    assert [data.name for data in watch.reads] == ["one", "two"]


def test_a_stream_named_by_its_text_is_told_from_one_that_is_misspelt():
    app = App("demo")
    app.stream("readings", Reading)
    app.service(reads="readings", name="one")(copy)
    app.service(reads="readigns", name="two")(copy)
    hints = {problem.hint for problem in check(app.graph) if problem.code == "part.not-data"}
    assert "did you mean 'readings'?" in hints
    assert any("not its name" in hint for hint in hints)
