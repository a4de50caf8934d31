"""Dead letters of a pipeline are written once, also after the cluster has forgotten the position."""

import threading
from types import SimpleNamespace

import pytest

from penstock import App, record
from penstock.backbone.declare import declare_application
from penstock.backbone.log.positions import PositionStore
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.records.deadletter import read_letter
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.gate.sweeper import Sweeper


@record(key="word")
class Word:
    word: str


@pytest.fixture
def shop(kafka, topic, tmp_path):
    """Give an application with two pipelines over one topic, and what makes their sweepers."""
    app = App(topic.name("shop"))
    words = app.stream(f"{app.graph.app}.words", Word, partitions=2)

    @app.pipeline(reads=words, writes=app.stream(f"{app.graph.app}.one", Word))
    def one(words):
        return words

    @app.pipeline(reads=words, writes=app.stream(f"{app.graph.app}.other", Word))
    def other(words):
        return words

    graph = verified(app.graph)
    declare_application(graph, kafka)
    site = Site(
        settings=Settings(),
        places=Places(tmp_path),
        connection=kafka,
        stop=threading.Event(),
        report=lambda _: None,
    )
    name = words.topic.name

    def send(*values: bytes) -> None:
        with Producer(kafka) as producer:
            for value in values:
                producer.send(name, key=b"k", value=value)

    def sweep(part: str) -> None:
        # A small range needs no Spark.
        letters = graph.dead_letters.name
        sweeper = Sweeper(graph, graph.part(part), site, None, into=letters)
        ends = Topics(kafka).ends(name)
        sweeper.catch_up({(name, number): high for number, (_, high) in ends.items()})
        sweeper.save()
        sweeper.close()

    def letters() -> list[tuple[str, bytes]]:
        found = LogReader(kafka).read(graph.dead_letters.name)
        return [(read_letter(r.key, r.value, r.headers).part, r.value) for r in found]

    def forget(part: str) -> None:
        PositionStore(kafka).forget(f"deadletters.{graph.app}.{part}")

    return SimpleNamespace(send=send, sweep=sweep, letters=letters, forget=forget)


def test_letters_are_not_written_again_when_the_position_was_forgotten(shop):
    shop.send(b"bad 1", b'{"word":"k"}', b"bad 2", b'{"word":"k"}')
    for part in ("one", "other"):
        shop.sweep(part)
    before = [("one", b"bad 1"), ("one", b"bad 2"), ("other", b"bad 1"), ("other", b"bad 2")]
    assert shop.letters() == before
    shop.forget("one")
    shop.send(b"bad 3")
    shop.sweep("one")
    assert shop.letters() == [*before, ("one", b"bad 3")]
    shop.sweep("one")
    assert len(shop.letters()) == 5
