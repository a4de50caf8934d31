from collections.abc import Iterable
from datetime import timedelta

import pytest

from penstock import App, Context, State, record, send
from penstock.core.graph.data import LAKE_HISTORY
from penstock.core.graph.graph import Edge
from penstock.core.graph.parts import Service
from penstock.core.rules.check import check, verified
from penstock.core.topic import TopicSpec
from penstock.errors import DefinitionError


@record()
class Line:
    text: str


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


def build(partitions: int = 2) -> App:
    app = App("demo")
    lines = app.stream("lines", Line, retention="1d", partitions=partitions)
    words = app.stream("words", Word)
    counts = app.table("counts", Count)

    @app.service(reads=lines, writes=words)
    def split(line: Line) -> Iterable[Word]:
        return [Word(word) for word in line.text.split()]

    @app.service(reads=words, writes=counts)
    def count(word: Word, total: State[int], where: Context) -> Count:
        total.set(total.get(0) + 1)
        return Count(word.word, total.get(0))

    return app


def test_tables_beside_a_stream_and_the_lake_beside_either_are_looked_up():
    app = App("demo")
    words, counts = app.stream("words", Word), app.table("counts", Count)
    lake = app.lake("lake", Count)

    def lookups(*reads):
        pipeline = app.pipeline(reads=reads, writes=counts)(lambda *frames: frames[0])
        return [data.name for data in pipeline.lookups]

    assert lookups(words) == lookups(counts) == lookups(lake, lake) == []
    assert lookups(words, counts, lake, words) == ["counts", "lake"]
    assert lookups(lake, counts) == ["lake"]


def test_a_graph_is_a_value_with_topics_edges_and_states():
    graph = build().graph
    assert check(graph) == []
    assert graph == build().graph
    assert graph != build(partitions=3).graph
    assert list(graph.edges()) == [
        Edge("lines", "split"),
        Edge("split", "words"),
        Edge("words", "count"),
        Edge("count", "counts"),
    ]
    assert [topic.name for topic in graph.topics()] == [
        "lines",
        "words",
        "counts",
        "demo.dead-letters",
        "demo.count.changelog",
    ]
    count = graph.part("count")
    assert isinstance(count, Service)
    assert [state.name for state in count.states] == ["total"]
    assert count.context == "where"


def test_a_stream_is_partitioned_by_key_where_there_is_one():
    graph = build().graph
    assert [data.topic.partitioning for data in graph.on_log] == ["round_robin", "key", "key"]
    assert graph.find("lines").topic.retention == timedelta(days=1)
    assert graph.find("counts").topic.compacted


def test_a_declared_function_can_still_be_called():
    graph = build().graph
    assert graph.part("split")(Line("a b")) == [Word("a"), Word("b")]


def test_an_output_can_be_addressed():
    app = App("demo")
    words = app.stream("words", Word)
    output = send(words, Word("x"), headers={"a": b"1"})
    assert (output.to, output.record, output.headers) == (words, Word("x"), {"a": b"1"})


def test_a_wrong_application_is_refused_as_a_whole():
    app = build()
    app.stream("lines", Word)
    app.table("free", Line)
    with pytest.raises(DefinitionError) as caught:
        verified(app.graph)
    assert len(caught.value.problems) == 3
    assert "3 problems" in str(caught.value)


def test_the_defaults_that_a_signature_shows_are_those_of_a_topic():
    for declared in (App("demo").stream("readings", Word), App("demo").table("words", Word)):
        plain = TopicSpec(name="plain")
        assert declared.topic.partitions == plain.partitions
        assert declared.topic.max_record_bytes == plain.max_record_bytes
    assert App("demo").lake("kept", Word).history == LAKE_HISTORY
