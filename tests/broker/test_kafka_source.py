"""A topic of another cluster, which here is the same one, read as a source."""

import threading

import pytest
from tests.broker.sink_site import eventually, running

from penstock import App, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.connectors import kafka_topic
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_source


@record(key="id")
class Small:
    id: str
    count: int = 0


def source_of(kafka, name, **given):
    return kafka_topic(name, bootstrap=kafka.bootstrap, **given)


def written(kafka, name, values, *, partition, key=None):
    with Producer(kafka) as producer:
        for value in values:
            producer.send(name, key=key, value=value, partition=partition)


def test_records_of_all_partitions_pass_the_trial_and_aborted_ones_are_left_out(kafka, topic):
    name = topic(partitions=3)
    for partition in range(3):
        written(kafka, name, [b"%d-%d" % (partition, n) for n in range(3_000)], partition=partition)
    producer = TransactionalProducer(kafka, f"{name}-aborts")
    producer.begin()
    producer.send(name, key=None, value=b"never", partition=0)
    producer.close()
    with TransactionalProducer(kafka, f"{name}-aborts"):
        pass  # this aborts what the former one left
    found = try_source(source_of(kafka, name), items=9_000, runs=1)
    for partition in range(3):
        assert found[str(partition)] == [b"%d-%d" % (partition, n) for n in range(3_000)]


def test_a_source_that_begins_at_the_end_passes_nothing_over_that_comes_while_it_is_away(
    kafka, topic
):
    name = topic(partitions=1)
    written(kafka, name, [b'{"id":"old","count":1}'], partition=0)
    app = App(topic.name("app"))
    into = app.stream("copied", Small)
    app.source("theirs", source_of(kafka, name, start="latest"), into=into)
    Topics(kafka).declare(app.graph.topics())
    positions = app.graph.positions(app.graph.part("theirs")).name

    def values():
        return sorted(each.value for each in LogReader(kafka).read(into.topic.name))

    def kept():
        return [each.value for each in LogReader(kafka).read(positions)]

    with running(kafka, app.graph, "theirs"):
        eventually(kept)  # where it begins is kept before anything comes
    written(kafka, name, [b'{"id":"a","count":1}', b"no JSON"], partition=0)
    with running(kafka, app.graph, "theirs") as reports:
        eventually(lambda: len(values()) == 1)
        eventually(lambda: reports[-1].counts.dead_lettered == 1)
    assert values() == [b'{"id":"a","count":1}']


def test_a_whole_record_has_its_key_headers_and_place(kafka, topic):
    name = topic(partitions=1)
    with Producer(kafka) as producer:
        producer.send(name, key=b"k", value=b"v", partition=0, headers=(("h", b"\xff"),))
        producer.send(name, key=b"k", value=None, partition=0)
        producer.send(name, key=b"\xff", value=b"v", partition=0)
    items = read_all(source_of(kafka, name, whole=True), 3)
    first = items[0].content
    assert (first["key"], first["value"], first["headers"]) == ("k", "v", {"h": b"\xff"})
    assert (first["partition"], first["offset"], first["written_at"].tzinfo is None) == (
        0,
        0,
        False,
    )
    assert items[1].content["value"] is None
    assert items[2].fault().code == "data.not-utf8"
    alone = source_of(kafka, name).open("0", 2)
    eventually(alone.read)
    alone.close()
    plain = read_all(source_of(kafka, name), 3)
    assert [item.fault().code if item.fault() else "" for item in plain] == [
        "",
        "source.no-row",
        "",
    ]


def test_of_partitions_that_were_added_since_nothing_is_passed_over(kafka, topic):
    name = topic(partitions=2)
    for partition in range(2):
        written(kafka, name, [b"a", b"b"], partition=partition)
    with source_of(kafka, name, start="latest").attach() as attached:
        assert attached.splits() == ["0", "1"]
        assert attached.open("0", None).moved() == 2
        assert attached.open("0", 1).moved() is None  # a former run was there
        assert attached.open("1", None).moved() == 0


def read_all(connector, count):
    items, pause = [], threading.Event()
    with connector.attach() as attached:
        attached.splits()
        reading = attached.open("0", None)
        for _ in range(3_000):
            items += reading.read()
            if len(items) >= count:
                return items
            pause.wait(0.02)
    raise AssertionError(f"only {len(items)} came")


def test_what_is_wrong_with_the_other_cluster_is_told(kafka, topic):
    name = topic(partitions=1)
    app = App("copy")
    into = app.stream("copied", Small)
    good = source_of(kafka, name)
    assert good.attempt(app.source("good", good, into=into)) == "good: 1 partitions, 0 offsets"
    missing = source_of(kafka, f"{name}-missing")
    with pytest.raises(ConfigurationError, match="missing"):
        missing.attempt(app.source("missing", missing, into=into))
    away = kafka_topic(name, bootstrap="127.0.0.1:1", timeout="1s")
    with pytest.raises(TransientError) as raised:
        away.attempt(app.source("away", away, into=into))
    assert raised.value.code == "connector.away"
    with good.attach() as attached:
        with pytest.raises(ConfigurationError, match="no position"):
            attached.open("0", "x")
        beyond = attached.open("0", 77)
        with pytest.raises(ConfigurationError) as refused:
            beyond.read()
    assert refused.value.code == "offset.beyond-end"


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "a/b"},
        {"bootstrap": "kafka"},
        {"bootstrap": "user:sesame@kafka:9092"},
        {"bootstrap": "kafka:99999"},
        {"user": "u"},
        {"user": "u", "password": "sesame"},
        {"start": "yesterday"},
        {"timeout": "0s"},
        {"tls": "yes"},
    ],
)
def test_each_wrong_option_is_a_problem_of_the_application(options):
    made = kafka_topic(**{"topic": "t", "bootstrap": "kafka:9092", **options})
    app = App("copy")
    app.source("in", made, into=app.stream("small", Small))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)
