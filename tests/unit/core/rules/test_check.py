"""Each mistake an author can make, and the problem it gives.

Long because each mistake has the smallest application that makes it.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated

import pytest

from penstock import App, EventTime, Output, State, day, feedback, limits, real_time, record
from penstock.aggregates import count
from penstock.connectors import BatchLimits, json_files, text_file
from penstock.core.rules.check import check
from penstock.windows import fixed


@record(key="id", time="at")
class Event:
    id: str
    at: datetime


@record()
class Free:
    text: str


@record(key="nmae")
class Misspelt:
    name: str


class Plain:
    pass


def duplicate_name(app):
    app.stream("events", Event)
    app.table("events", Event)


def invalid_name(app):
    app.stream("my events", Event)


def reserved_name(app):
    app.stream("__offsets", Event)


def no_record(app):
    app.stream("events", Plain)


def misspelt_key(app):
    app.stream("events", Misspelt)


def unreadable_retention(app):
    app.stream("events", Event, retention="7 parsecs")


def no_partitions(app):
    app.stream("events", Event, partitions=0)


def no_replicas(app):
    app.stream("events", Event, replication=0)


def table_without_key(app):
    app.table("latest", Free)


def stream_without_key(app):
    app.stream("events", Free, partition_by="key")


def disorder_without_time(app):
    app.stream("events", Free, event_time=EventTime(disorder="5s"))


def lake_partitioned_by_nothing(app):
    app.lake("archive", Event, partition_by="dya")


def lake_partitioned_by_instants(app):
    app.lake("archive", Event, partition_by="at")


def lake_partitioned_by_the_day_of_a_text(app):
    app.lake("archive", Event, partition_by=day("id"))


def lake_retention_without_time(app):
    app.lake("archive", Free, retention="90d")


def lake_retention_without_days(app):
    app.lake("archive", Event, partition_by="id", retention="90d")


def lake_without_history(app):
    app.lake("archive", Event, history="0s")


def lake_that_changes_under_its_follower(app):
    whole = app.lake("whole", Event)

    @app.pipeline(reads=app.stream("events", Event), writes=whole, output="complete")
    def write(events): ...

    @app.pipeline(reads=whole, writes=app.stream("out", Event))
    def follow(whole): ...


def wrong_type_taken(app):
    @app.service(reads=app.stream("events", Event))
    def watch(event: Free) -> None: ...


def untyped_parameter(app):
    @app.service(reads=app.stream("events", Event))
    def watch(event) -> None: ...


def unknown_parameter(app):
    @app.service(reads=app.stream("events", Event))
    def watch(event: Event, other: int) -> None: ...


def wrong_type_given(app):
    @app.service(reads=app.stream("events", Event), writes=app.stream("out", Event))
    def watch(event: Event) -> Iterable[Event | Free]: ...


def never_given(app):
    @app.service(
        reads=app.stream("events", Event),
        writes=(app.stream("out", Event), app.stream("free", Free)),
    )
    def watch(event: Event) -> Iterator[Event]: ...


def untyped_result(app):
    @app.service(reads=app.stream("events", Event))
    def watch(event: Event): ...


def unreadable_annotation(app):
    @app.service(reads=app.stream("events", Event))
    def watch(event: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def ambiguous_output(app):
    @app.service(
        reads=app.stream("events", Event),
        writes=(app.stream("good", Event), app.stream("bad", Event)),
    )
    def sort(event: Event) -> Event: ...


def concurrency_of_nothing_async(app):
    @app.service(reads=app.stream("events", Event), concurrency=10)
    def watch(event: Event) -> None: ...


def timeout_of_nothing_async(app):
    @app.service(reads=app.stream("events", Event), timeout="5s")
    def watch(event: Event) -> None: ...


def unknown_engine(app):
    events = app.stream("events", Event)
    app.table("counts", events.window(fixed("1m"), by="id").aggregate(n=count()), on="service")


def reads_nothing(app):
    @app.service(reads=())
    def watch(event: Event) -> None: ...


def state_without_key(app):
    @app.service(reads=app.stream("events", Free))
    def watch(event: Free, seen: State[int]) -> None: ...


def state_over_unequal_partitions(app):
    @app.service(reads=(app.stream("a", Event), app.stream("b", Event, partitions=3)))
    def watch(event: Event, seen: State[int]) -> None: ...


def reads_a_text(app):
    app.stream("events", Event)

    @app.service(reads="evnts")
    def watch(event: Event) -> None: ...


def writes_a_text(app):
    @app.pipeline(reads=app.stream("events", Event), writes="evnts")
    def copy(events): ...


def undeclared_stream(app):
    @app.service(reads=App("other").stream("theirs", Event))
    def watch(event: Event) -> None: ...


def wrong_number_of_frames(app):
    @app.pipeline(reads=app.stream("events", Event), writes=app.stream("out", Event))
    def join(events, others): ...


def real_time_lake(app):
    @app.pipeline(
        reads=app.stream("events", Event), writes=app.lake("all", Event), trigger=real_time()
    )
    def copy(events): ...


def undeclared_cycle(app):
    events = app.stream("events", Event)

    @app.service(reads=events, writes=events)
    def echo(event: Event) -> Event: ...


def slow_pattern_in_real_time(app):
    @record()
    class Named:
        name: Annotated[str, limits(pattern="(a+)+$")]

    one, two = app.stream("slow-one", Named), app.stream("slow-two", Event)

    @app.pipeline(reads=one, writes=two, trigger=real_time())
    def quick(frame): ...


def slow_pattern_in_a_list(app):
    @record()
    class Named:
        name: Annotated[str, limits(pattern="(a+)+$")]

    @record()
    class Names:
        names: list[Named]

    one, two = app.stream("listed-one", Event), app.stream("listed-two", Names)

    @app.pipeline(reads=one, writes=two)
    def listed(frame): ...


def pattern_of_python_alone(app):
    @record()
    class Worded:
        name: Annotated[str, limits(pattern=r"\bword\b")]

    app.stream("worded", Worded)


def name_of_a_changelog(app):
    events = app.stream("counted", Event)
    app.stream(f"{app.name}.tally.changelog", Event)

    @app.service(reads=events)
    def tally(event: Event, total: State[int]) -> None: ...


def name_of_the_dead_letters(app):
    app.stream(f"{app.name}.dead-letters", Event)


MISTAKES = {
    duplicate_name: "name.twice",
    name_of_a_changelog: "name.twice",
    name_of_the_dead_letters: "name.twice",
    invalid_name: "name.invalid",
    reserved_name: "name.invalid",
    no_record: "data.not-a-record",
    misspelt_key: "record.key-unknown",
    unreadable_retention: "data.option",
    no_partitions: "data.option",
    no_replicas: "data.option",
    table_without_key: "table.no-key",
    stream_without_key: "stream.no-key",
    disorder_without_time: "stream.no-time",
    lake_partitioned_by_nothing: "lake.partition",
    lake_partitioned_by_instants: "lake.partition",
    lake_partitioned_by_the_day_of_a_text: "lake.partition",
    lake_retention_without_time: "lake.no-time",
    lake_retention_without_days: "lake.retention",
    lake_without_history: "data.option",
    lake_that_changes_under_its_follower: "lake.overwritten",
    wrong_type_taken: "service.takes",
    untyped_parameter: "service.takes",
    unknown_parameter: "service.parameter",
    wrong_type_given: "service.gives",
    never_given: "service.never-gives",
    untyped_result: "service.gives",
    unreadable_annotation: "service.annotation",
    ambiguous_output: "service.ambiguous",
    concurrency_of_nothing_async: "service.not-async",
    timeout_of_nothing_async: "service.not-async",
    unknown_engine: "data.option",
    reads_nothing: "part.reads-nothing",
    state_without_key: "service.no-key",
    state_over_unequal_partitions: "service.partitions",
    reads_a_text: "part.not-data",
    writes_a_text: "part.not-data",
    undeclared_stream: "part.undeclared",
    wrong_number_of_frames: "pipeline.parameters",
    real_time_lake: "pipeline.real-time",
    slow_pattern_in_real_time: "pipeline.pattern",
    slow_pattern_in_a_list: "pipeline.pattern",
    pattern_of_python_alone: "record.pattern",
    undeclared_cycle: "graph.cycle",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_each_mistake_is_found_with_its_place(mistake):
    app = App("wrong")
    mistake(app)
    problems = check(app.graph)
    assert {problem.code for problem in problems} == {MISTAKES[mistake]}
    assert all(problem.place and problem.place.file == __file__ for problem in problems)


def test_all_mistakes_come_in_one_answer():
    app = App("wrong")
    for mistake in MISTAKES:
        mistake(app)
    assert {problem.code for problem in check(app.graph)} >= set(MISTAKES.values())


def test_problems_come_in_the_order_of_the_source():
    app = App("wrong")
    table_without_key(app)
    invalid_name(app)
    lines = [problem.place.line for problem in check(app.graph)]
    assert lines == sorted(lines)


def test_a_declared_cycle_is_no_problem():
    app = App("right")
    events = app.stream("events", Event)

    @app.service(reads=events, writes=feedback(events))
    def echo(event: Event) -> Event: ...

    assert check(app.graph) == []


def test_every_cycle_is_shown_as_the_way_records_go():
    app = App("wrong")
    one, two = app.stream("one", Event), app.stream("two", Event)

    @app.service(reads=one, writes=two)
    def there(event: Event) -> Event: ...

    @app.service(reads=two, writes=one)
    def back(event: Event) -> Event: ...

    @app.service(reads=two, writes=two)
    def loop(event: Event) -> Event: ...

    said = [problem.message for problem in check(app.graph)]
    assert len(said) == 2
    assert any("there" in text and "back" in text for text in said)
    assert any("two → loop → two" in text for text in said)


def test_a_hint_names_what_was_probably_meant():
    app = App("wrong")
    reads_a_text(app)
    hints = [problem.hint for problem in check(app.graph)]
    assert "did you mean 'events'?" in hints


def test_an_output_that_names_its_stream_is_not_ambiguous():
    app = App("right")
    good, bad = app.stream("good", Event), app.stream("bad", Event)

    @app.service(reads=app.stream("events", Event), writes=(good, bad))
    def sort(event: Event) -> Iterable[Output[Event]]: ...

    assert check(app.graph) == []


def test_the_hint_says_how_to_address_an_output():
    app = App("wrong")
    ambiguous_output(app)
    (problem,) = check(app.graph)
    assert problem.message == "service 'sort' gives Event, which good and bad both hold"
    assert problem.hint == "say which: send(good, Event(...)), and annotate -> Output[Event]"


def test_an_engine_that_is_misspelt_is_not_taken_for_spark():
    app = App("wrong")
    unknown_engine(app)
    (problem,) = check(app.graph)
    assert problem.message == "table 'counts': on: there is no 'service'"
    assert problem.hint == "did you mean 'services'?"


class NoConnector:
    """Something that describes itself and can do nothing."""

    interactive = False
    delivery = "exactly_once"

    def describe(self) -> str:
        return "nothing"


def test_what_can_neither_be_read_nor_written_is_no_connector():
    app = App("demo")
    words = app.stream("words", Free)
    app.source("in", NoConnector(), into=words)
    app.sink("out", NoConnector(), reads=words)
    problems = check(app.graph)
    assert [problem.code for problem in problems] == ["source.no-connector", "sink.no-connector"]
    assert all(problem.hint for problem in problems)


class Whole(NoConnector):
    """A positioned source and a sink."""

    grows = False
    limits = BatchLimits()

    def splits(self):
        return [""]

    def open(self, *_):
        raise AssertionError


LACKING = [
    ("source", {"grows": None}, "grows"),
    ("source", {"grows": None, "interactive": None}, "interactive, grows"),
    ("source", {"splits": None}, "splits"),
    ("source", {"open": None}, "open"),
    ("source", {"open": None, "run": print, "interactive": None}, "interactive"),
    ("source", {"attach": print, "interactive": None}, "interactive"),
    ("sink", {"delivery": None}, "delivery"),
    ("sink", {"limits": None, "delivery": None}, "delivery, limits"),
]


@pytest.mark.parametrize(("kind", "changed", "lacks"), LACKING)
def test_what_a_connector_lacks_is_told_with_what_to_write(kind, changed, lacks):
    app = App("demo")
    words = app.stream("words", Free)
    connector = type("Mine", (Whole,), changed)()
    if kind == "source":
        app.source("mine", connector, into=words)
    else:
        app.sink("mine", connector, reads=words)
    (problem,) = check(app.graph)
    assert problem.message == f"{kind} 'mine': Mine has no {lacks}"
    assert problem.code == f"{kind}.no-connector"
    assert all(each in problem.hint for each in lacks.split(", "))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"delivery": "exactly once"}, "is 'exactly once', which is no promise"),
        ({"delivery": 1}, "is 1, which is no promise"),
        ({"limits": 100}, "are 100, which has no bounds"),
    ],
)
def test_what_a_sink_promises_and_takes_at_a_time_has_to_be_known(changed, words):
    app = App("demo")
    app.sink("mine", type("Mine", (Whole,), changed)(), reads=app.stream("words", Free))
    (problem,) = check(app.graph)
    assert words in problem.message
    assert problem.hint


def test_a_connector_that_has_everything_is_no_problem_and_its_class_is_one():
    app = App("demo")
    words = app.stream("words", Free)
    app.source("in", Whole(), into=words)
    app.sink("out", Whole(), reads=words)
    assert check(app.graph) == []
    app.source("one", Whole, into=words)
    app.sink("two", Whole, reads=words)
    problems = check(app.graph)
    assert [problem.hint for problem in problems] == ["call it: Whole(...)"] * 2


def test_a_sink_reads_a_stream_or_a_table():
    app = App("demo")
    app.stream("words", Free)
    app.sink("out", json_files("dump"), reads="word")
    (problem,) = check(app.graph)
    assert problem.message == "out reads 'word', which is not a stream or a table"
    assert problem.hint == "did you mean 'words'?"


def test_a_stream_may_not_have_the_name_of_the_positions_of_a_source():
    app = App("demo")
    words = app.stream("demo.in.positions", Free)
    app.source("in", text_file("words.txt"), into=words)
    (problem,) = check(app.graph)
    assert "the topic of the positions of source 'in'" in problem.message
