"""Services on a real broker: what they promise while nothing goes wrong but the records."""

import threading
from collections import Counter
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

import pytest

from penstock import App, EventTime, Output, State, delete, on_error, record, retry
from penstock.aggregates import count
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError
from penstock.testing.deadletters import read_dead_letter
from penstock.windows import fixed

from . import service_worker as kit

WORDS = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"]


@pytest.fixture
def app(kafka, topic):
    return kit.declared(topic.name("app"), kafka)


def lag(kafka, app, service):
    return sum(found.lag for found in Groups(kafka).lag(f"{app.name}.{service}").values())


def dead_letters(kafka, app):
    return [
        read_dead_letter(raw)
        for batch in LogReader(kafka).batches(app.dead_letters)
        for raw in batch
    ]


def test_a_stateless_and_a_stateful_service_count_words_exactly_once(kafka, app):
    with Producer(kafka) as producer:
        for number in range(2000):
            line = f"to be or not to be {number % 50}".encode()
            producer.send(app.lines.topic.name, key=None, value=b'{"text":"%s"}' % line)
    with kit.InThread(kafka, app, "split", "count") as running:
        kit.eventually(lambda: running.has("count", passed=14_000), what="all words counted")
        kit.eventually(lambda: lag(kafka, app, "count") == 0, what="no lag, marks included")
    assert running.error is None
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []
    for part in ("split", "count"):
        final = running.last(part)
        assert (final.state, final.counts.in_flight) == ("stopped", 0)
        assert final.counts.balanced
    assert lag(kafka, app, "split") == 0


def test_at_most_once_a_killed_worker_does_nothing_twice(kafka, topic):
    app = kit.declared(topic.name("app"), kafka, delivery="at_most_once")
    words = [f"w{number}" for number in range(30_000)]
    kit.send_words(kafka, app, words)
    with kit.InProcess(kafka, app, "count") as worker:
        kit.eventually(
            lambda: kit.committed_records(kafka, app.counts.topic.name) > 1000, what="some counted"
        )
        worker.kill()
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(
            lambda: running.state("count") == "running" and lag(kafka, app, "count") == 0,
            what="all taken",
        )
    found = kit.counted(kafka, app)
    assert {word: counts for word, counts in found.items() if counts != [1]} == {}
    assert set(found) <= set(words)


def test_an_async_service_killed_half_way_counts_exactly_once(kafka, app):
    kit.send_words(kafka, app, [f"w{number % 500}" for number in range(10_000)])
    with kit.InProcess(kafka, app, "ask") as worker:
        kit.eventually(
            lambda: kit.committed_records(kafka, app.counts.topic.name) > 500, what="some counted"
        )
        worker.kill()
    with kit.InThread(kafka, app, "ask") as running:
        kit.all_counted(kafka, app)
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []
    assert running.error is None


def test_a_record_that_is_tried_again_holds_its_partition_and_no_other(kafka, topic):
    app = App(topic.name("app"))
    words = app.stream(f"{app.name}.words", kit.Word)
    out = app.stream(f"{app.name}.out", kit.Word, partitions=1)
    attempts, mended = [], threading.Event()

    @app.service(
        reads=words, writes=out, errors=on_error(process=retry(999, first="50ms", longest="100ms"))
    )
    def copy(word: kit.Word) -> kit.Word:
        if word.word == "bad" and not mended.is_set():
            attempts.append(word)
            raise OSError("away")
        return word

    Topics(kafka).declare(app.graph.topics())
    with Producer(kafka) as producer:
        for number in range(2):
            for word in ["before", "bad" if number == 0 else "good", "after"]:
                value = b'{"word":"%s"}' % word.encode()
                producer.send(words.topic.name, key=word.encode(), value=value, partition=number)
    with kit.InThread(kafka, SimpleNamespace(app=app), "copy") as running:
        kit.eventually(lambda: running.state("copy") == "degraded", what="the hold is told")
        kit.eventually(lambda: len(attempts) >= 20, what="many tries")
        held = running.last("copy")
        mended.set()
        kit.eventually(lambda: running.has("copy", passed=6), what="all copied")
    assert f"{words.topic.name}[0] offset 1 is tried up to 1000 times" in held.reason
    assert "copy raised OSError: away" in held.detail["retrying"]
    assert (held.lag, held.metrics["retrying_partitions"]) == (2, 1)
    found = [raw.key.decode() for raw in LogReader(kafka).read(out.topic.name)]
    assert found[-2:] == ["bad", "after"]
    assert sorted(found) == ["after", "after", "bad", "before", "before", "good"]
    ended = running.last("copy")
    assert ended.counts.balanced
    assert ended.metrics["process_seconds_count"] == 6
    assert ended.metrics["commit_seconds_count"] < len(attempts)
    assert ended.metrics["retrying_partitions"] == 0


def test_a_service_deletes_rows_of_a_table_and_its_readers_are_not_called(kafka, topic):
    app = App(topic.name("app"))
    words = app.stream(f"{app.name}.words", kit.Word)
    latest = app.table(f"{app.name}.latest", kit.Count)
    seen = []

    @app.service(reads=words, writes=latest)
    def hold(word: kit.Word) -> kit.Count | Output[kit.Count]:
        if word.weight:
            return kit.Count(word.word, word.weight)
        return delete(latest, word.word, headers={"why": b"weightless"})

    @app.service(reads=latest)
    def hear(row: kit.Count) -> None:
        seen.append(row)

    Topics(kafka).declare(app.graph.topics())
    with Producer(kafka) as producer:
        for word, weight in (("a", 1), ("b", 2), ("a", 0)):
            value = b'{"word":"%s","weight":%d}' % (word.encode(), weight)
            producer.send(words.topic.name, key=word.encode(), value=value)
    with kit.InThread(kafka, SimpleNamespace(app=app), "hold", "hear") as running:
        kit.eventually(lambda: running.has("hold", passed=3), what="all written")
        kit.eventually(lambda: running.has("hear", received=3), what="all heard")
    assert running.error is None
    assert sorted(row.word for row in seen) == ["a", "b"]
    rows = list(LogReader(kafka).read(latest.topic.name))
    assert {raw.key: raw.value for raw in rows} == {b"a": None, b"b": b'{"word":"b","count":2}'}
    assert [raw.headers for raw in rows if raw.value is None] == [(("why", b"weightless"),)]


def test_windows_tell_their_watermark_and_how_far_it_is_behind(kafka, topic):
    @record(key="device", time="at")
    class Reading:
        device: str
        at: datetime

    app = App(topic.name("app"))
    readings = app.stream(
        f"{app.name}.readings", Reading, event_time=EventTime(disorder="10s"), partitions=1
    )
    declared = readings.window(fixed("1m"), by="device").aggregate(readings=count())
    app.stream(f"{app.name}.panes", declared, on="services")
    Topics(kafka).declare(app.graph.topics())
    with Producer(kafka) as producer:
        value = b'{"device":"a","at":"2026-01-01T00:00:30Z"}'
        producer.send(readings.topic.name, key=b"a", value=value)
    (service,) = app.graph.parts
    with kit.InThread(kafka, SimpleNamespace(app=app), service.name) as running:
        kit.eventually(lambda: running.has(service.name, passed=1), what="it is in its window")
        kit.eventually(
            lambda: "watermark" in running.last(service.name).detail, what="the watermark is told"
        )
        told = running.last(service.name)
    assert told.detail["watermark"].startswith("2026-01-01T00:00:20.000Z, ")
    assert told.detail["watermark"].endswith(" behind the clock, 10s behind the newest event")
    assert told.metrics["watermark_behind_newest_seconds"] == 10
    assert told.metrics['panes_total{kind="on_time"}'] == 0


def test_at_least_once_counts_the_same_when_nothing_fails(kafka, topic):
    app = kit.declared(topic.name("app"), kafka, delivery="at_least_once")
    kit.send_words(kafka, app, WORDS * 100)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=1000), what="all words counted")
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []
    assert lag(kafka, app, "count") == 0


def test_a_restarted_service_goes_on_with_the_state_it_had(kafka, app):
    for _ in range(2):
        kit.send_words(kafka, app, WORDS * 10)
        with kit.InThread(kafka, app, "count") as running:
            kit.eventually(lambda: running.has("count", passed=100), what="all words counted")
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []
    assert running.last("count").counts.received == 100


POISON: dict[str, list[tuple[bytes, bytes]]] = {
    "data.not-json": [
        (b"a", b"\xff\xfe broken"),
        (b"a", b'{"word":"a","weight":NaN}'),
        (b"a", b'{"word":"a"'),
        (b"a", b""),
    ],
    "data.wrong-type": [(b"a", b'{"word":7}'), (b"a", b'{"word":"a","weight":"x"}')],
    "data.missing-field": [(b"a", b'{"weight":1}')],
    "data.too-deep": [(b"a", b'{"word":"a","x":' + b"[" * 100_000)],
    "data.too-large": [(b"a", b'{"word":"a","x":"' + b"x" * (5 << 20) + b'"}')],
    "data.null-key": [(None, b'{"word":"a"}')],
    "data.key-mismatch": [(b"b", b'{"word":"a"}')],
    "data.null-value": [(b"a", None)],
    "user.raised": [(b"a", b'{"word":"a","weight":-1}')],
}


def test_poison_becomes_dead_letters_with_reason_place_and_bytes_and_the_counts_add_up(kafka, app):
    sent = [(code, key, value) for code, several in POISON.items() for key, value in several]
    with Producer(kafka) as producer:
        for _, key, value in sent:
            producer.send(app.words.topic.name, key=key, value=value, partition=1)
            producer.send(
                app.words.topic.name, key=b"a", value=b'{"word":"a","extra":1}', partition=1
            )
        producer.send(app.words.topic.name, key=b"a", value=b'{"word":"a","weight":0}', partition=1)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=len(sent)), what="the good ones counted")
    counts = running.last("count").counts
    assert (counts.received, counts.dead_lettered, counts.filtered) == (
        2 * len(sent) + 1,
        len(sent),
        1,
    )
    assert counts.balanced
    found = dead_letters(kafka, app)
    assert [(each.code, each.key, each.value) for each in found] == sent
    assert [str(each.coordinates) for each in found] == [
        f"{app.words.topic.name}[1]@{2 * number}" for number in range(len(sent))
    ]
    assert all(each.reason and each.part == "count" for each in found)
    assert kit.counted(kafka, app) == {"a": list(range(1, len(sent) + 1))}


def test_records_that_retention_deleted_before_they_were_read_stop_the_service_loudly(kafka, app):
    kit.send_words(kafka, app, WORDS)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=10), what="all words counted")
    kit.send_words(kafka, app, WORDS)
    ends = Topics(kafka).ends(app.words.topic.name)
    Topics(kafka).trim(app.words.topic.name, {number: high for number, (_, high) in ends.items()})
    with kit.InThread(kafka, app, "count") as running:
        running.join()
    assert isinstance(running.error, ConfigurationError)
    assert running.error.code == "offset.trimmed"
    assert running.last("count").state == "failed"
    assert app.words.topic.name in running.last("count").reason


def skipping():
    skips = replace(kit.SETTINGS.services, on_trimmed="skip")
    return replace(kit.SETTINGS, services=skips)


def test_where_it_is_allowed_deleted_records_are_skipped_counted_and_told(kafka, app):
    kit.send_words(kafka, app, WORDS)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=10), what="all words counted")
    kit.send_words(kafka, app, WORDS)
    trim(kafka, app)
    kit.send_words(kafka, app, ["to", "see"])
    with kit.InThread(kafka, app, "count", settings=skipping()) as running:
        kit.eventually(lambda: running.has("count", passed=2), what="the rest counted")
        kit.eventually(lambda: lag(kafka, app, "count") == 0, what="no lag")
    assert running.error is None
    assert running.last("count").metrics["skipped_offsets_total"] == 10
    assert "10 offsets" in running.last("count").detail["skipped"]
    assert kit.counted(kafka, app)["to"] == [1, 2, 3]


def test_records_deleted_under_a_running_service_are_skipped_where_it_is_allowed(kafka, topic):
    app = App(topic.name("app"))
    words = app.stream(f"{app.name}.words", kit.Word, partitions=1)
    failed = threading.Event()

    @app.service(reads=words, errors=on_error(process=retry(1, first="3s")))
    def count(word: kit.Word, total: State[int]) -> None:
        total.set(total.get(0) + 1)
        if word.word == "wait":
            failed.set()
            raise ValueError("not yet")

    Topics(kafka).declare(app.graph.topics())
    wired = SimpleNamespace(app=app, words=words)
    kit.send_words(kafka, wired, ["a", "b", "wait", "never", "read"])
    with kit.InThread(kafka, wired, "count", settings=skipping()) as running:
        assert failed.wait(kit.PATIENCE)
        trim(kafka, wired)
        kit.send_words(kafka, wired, ["c"])
        kit.eventually(lambda: running.has("count", passed=3), what="it goes on")
    assert running.error is None
    assert running.last("count").metrics["skipped_offsets_total"] == 3


def trim(kafka, app):
    """Delete everything there is of the words, as retention would."""
    ends = Topics(kafka).ends(app.words.topic.name)
    Topics(kafka).trim(app.words.topic.name, {number: high for number, (_, high) in ends.items()})


def test_a_state_whose_type_has_changed_stops_the_service_loudly(kafka, app):
    kit.send_words(kafka, app, WORDS)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=10), what="all words counted")

    @record(key="word")
    class Word:
        word: str

    changed = App(app.name)
    words = changed.stream(app.words.topic.name, Word)

    @changed.service(reads=words)
    def count(word: Word, total: State[str]) -> None: ...

    with kit.InThread(kafka, SimpleNamespace(app=changed), "count") as running:
        running.join()
    assert isinstance(running.error, ConfigurationError)
    assert running.error.code == "state.unreadable"


def test_a_missing_topic_stops_the_service_loudly(kafka, topic):
    app = kit.WordCount(topic.name("undeclared"))
    with kit.InThread(kafka, app, "count") as running:
        running.join()
    assert isinstance(running.error, ConfigurationError)
    assert running.error.code == "topic.missing"


def test_a_service_that_does_not_exist_is_refused_with_a_suggestion(kafka, topic):
    app = kit.WordCount(topic.name("app"))
    with kit.InThread(kafka, app, "coutn") as running:
        running.join()
    assert isinstance(running.error, ConfigurationError)
    assert "count" in running.error.hint


def test_a_stateless_service_may_read_streams_that_are_cut_differently(kafka, topic):
    @record(key="word")
    class Word:
        word: str

    app = App(topic.name("app"))
    one = app.stream(f"{app.name}.one", Word, partitions=1)
    three = app.stream(f"{app.name}.three", Word, partitions=3)
    out = app.stream(f"{app.name}.out", Word)

    @app.service(reads=(one, three), writes=out)
    def merge(word: Word) -> Word:
        return word

    Topics(kafka).declare(app.graph.topics())
    with Producer(kafka) as producer:
        for number in range(300):
            for data in (one, three):
                word = b"%d" % number
                producer.send(data.topic.name, key=word, value=b'{"word":"%s"}' % word)
    together = SimpleNamespace(app=app)
    with (
        kit.InThread(kafka, together, "merge") as first,
        kit.InThread(kafka, together, "merge") as second,
    ):
        both = (first, second)
        kit.eventually(
            lambda: (
                sum(found.counts.passed for each in both if (found := each.last("merge"))) == 600
            ),
            what="all merged",
        )
    assert first.error is second.error is None
    found = Counter(raw.key for raw in LogReader(kafka).read(out.topic.name))
    assert found == {b"%d" % number: 2 for number in range(300)}
