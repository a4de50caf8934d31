"""Topics that are deleted, made anew and cut anew under services that run."""

from dataclasses import replace

import pytest

from penstock import App, State
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError
from penstock.services.worker import topicwatch

from . import service_worker as kit


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(topicwatch, "LOOK_SECONDS", 0.5)


class Wired:
    """A copy of words without state, and a count of others with state."""

    def __init__(self, name):
        self.app = App(name)
        self.words = self.app.stream(f"{name}.words", kit.Word, partitions=2)
        self.copies = self.app.stream(f"{name}.copies", kit.Word, partitions=2)
        self.named = self.app.stream(f"{name}.named", kit.Word, partitions=2)

        @self.app.service(reads=self.words, writes=self.copies, name="copy")
        def copy(word: kit.Word) -> kit.Word:
            return word

        @self.app.service(reads=self.named, name="count")
        def count(word: kit.Word, seen: State[int]) -> None:
            seen.set(seen.get(0) + 1)


def test_new_partitions_are_read_and_a_topic_that_is_gone_is_named_until_it_is_back(kafka, topic):
    wired = Wired(topic.name("app"))
    topics = Topics(kafka)
    topics.declare(wired.app.graph.topics())
    kit.send_words(kafka, wired, ["a", "b"])
    with kit.InThread(kafka, wired, "copy") as running:
        kit.eventually(lambda: running.has("copy", passed=2), what="two words")
        topics.declare([replace(wired.words.topic, partitions=4)], change=True, repartition=True)
        kit.send_words(kafka, wired, [f"w{number}" for number in range(40)])
        kit.eventually(lambda: running.has("copy", passed=42), what="the words of all partitions")
        topics.delete([wired.copies.topic.name])
        lost = f"there is no topic {wired.copies.topic.name} any more"
        kit.eventually(lambda: lost in running.last("copy").reason, what="the topic that is gone")
        topics.declare([wired.copies.topic])
        kit.send_words(kafka, wired, ["c"])
        kit.eventually(lambda: running.state("copy") == "running", what="it goes on")
        name, reader = wired.copies.topic.name, LogReader(kafka)
        kit.eventually(lambda: b"c" in {each.key for each in reader.read(name)}, what="a copy")
    assert running.error is None


def test_an_input_that_is_made_anew_under_a_service_stops_it(kafka, topic):
    wired = Wired(topic.name("app"))
    topics = Topics(kafka)
    topics.declare(wired.app.graph.topics())
    wired.words = wired.named  # what words are sent to
    kit.send_words(kafka, wired, [f"w{number}" for number in range(20)])
    with kit.InThread(kafka, wired, "count") as running:
        kit.eventually(lambda: running.has("count", passed=20), what="twenty words")
        topics.delete([wired.named.topic.name])
        topics.declare([wired.named.topic])
        kit.send_words(kafka, wired, [f"w{number}" for number in range(30)])
        running.join()
    assert isinstance(running.error, ConfigurationError)
    # Where the new one is still too short to read on in, that is what is seen first.
    assert running.error.code in {"input.recreated", "offset.beyond-end"}
