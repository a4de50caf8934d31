"""Operators and broadcast tables on a real broker: killed, restarted, waited for."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import msgspec

from penstock import App, by_event_time, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.tables import Rows, broadcast

from . import service_worker as kit

SCENARIOS = Path(__file__).parents[1] / "chaos" / "operatorscenarios.py"
chaos = SimpleNamespace(**runpy.run_path(str(SCENARIOS)))


@record(key="key", time="at")
class Event:
    key: str
    at: int


def test_all_operators_and_actors_killed_again_and_again_tell_what_they_tell_in_the_driver(
    kafka, topic, tmp_path
):
    killed = chaos.Killed(kafka, topic.name("app"), 3, number=3_000)
    killed.play(kills=3, directory=str(tmp_path))
    assert killed.wrong(killed.expected()) == [], killed.deaths


def test_rows_of_a_broadcast_table_are_whole_before_the_first_record_and_follow_it(kafka, topic):
    app = App(topic.name("app"))
    words = app.stream(f"{app.name}.words", kit.Word)
    counts = app.stream(f"{app.name}.counts", kit.Count)
    table = app.table(f"{app.name}.table", kit.Count, partitions=3)

    @app.service(reads=(words, broadcast(table)), writes=counts)
    def look_up(word: kit.Word, rows: Rows[kit.Count]) -> kit.Count:
        return kit.Count(word.word, rows[word.word].count + len(rows))

    Topics(kafka).declare(app.graph.topics())

    def send(data, word, number=None):
        value = msgspec.json.encode({"word": word, "count": number or 0})
        with Producer(kafka) as producer:
            producer.send(data.topic.name, key=word.encode(), value=value)

    def found():
        read = LogReader(kafka).read(counts.topic.name)
        return sorted(msgspec.json.decode(raw.value)["count"] for raw in read)

    with Producer(kafka) as producer:
        for number in range(1000):
            row = b'{"word":"w%d","count":%d}' % (number, number)
            producer.send(table.topic.name, key=b"w%d" % number, value=row)
    send(words, "w7")
    send(words, "w999")
    with kit.InThread(kafka, SimpleNamespace(app=app), "look_up") as running:
        kit.eventually(lambda: running.has("look_up", passed=2), what="both looked up")
        assert found() == [1007, 1999]
        send(table, "new", 5)

        def follows():
            send(words, "w7")
            return 1008 in found()

        kit.eventually(follows, what="the new row counts")
    assert running.error is None


def test_backlogs_of_two_streams_are_handled_as_they_happened(kafka, topic):
    app = App(topic.name("app"))
    one = app.stream(f"{app.name}.one", Event)
    two = app.stream(f"{app.name}.two", Event)
    out = app.stream(f"{app.name}.out", Event)

    @app.service(reads=by_event_time(one, two), writes=out)
    def copy(event: Event) -> Event:
        return event

    Topics(kafka).declare(app.graph.topics())
    with Producer(kafka) as producer:
        for stream, start in ((one, 0), (two, 1)):
            for at in range(start, 12_000, 2):
                key = b"k%d" % (at // 2 % 7)
                value = b'{"key":"%s","at":%d}' % (key, at)
                producer.send(stream.topic.name, key=key, value=value)

    def times(number):
        read = LogReader(kafka).read(out.topic.name, partitions=[number])
        return [msgspec.json.decode(raw.value)["at"] for raw in read]

    with kit.InThread(kafka, SimpleNamespace(app=app), "copy") as running:
        kit.eventually(lambda: running.has("copy", passed=12_000), what="both backlogs")
        with Producer(kafka) as producer:
            value = b'{"key":"k1","at":99999}'
            producer.send(one.topic.name, key=b"k1", value=value)
        kit.eventually(lambda: running.has("copy", passed=12_001), what="one that is alone")
    found = [times(number) for number in range(2)]
    assert sorted(at for each in found for at in each) == [*range(12_000), 99_999]
    assert all(each == sorted(each) for each in found)
