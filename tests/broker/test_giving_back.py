"""Dead letters go back to their streams, each once, whatever ends the giving or runs beside it."""

from datetime import UTC, datetime

import pytest

from penstock import App, record
from penstock.backbone.declare import declare_application
from penstock.backbone.givingback import (
    MOST_TIMES,
    Choice,
    give_back,
    given_back,
    marks_topic,
    plan,
    read_record_place,
)
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.core.records.deadletter import (
    GIVEN_BACK,
    TIMER,
    Coordinates,
    dead_letter_headers,
    read_letter,
)
from penstock.core.rules.check import verified
from penstock.errors import ConfigurationError, DataError, FencedError

pytestmark = pytest.mark.broker

GOOD = b'{"word": "hello"}'


@record(key="word")
class Word:
    word: str


class Shop:
    """An application with two services that read its words, and what buries records of it."""

    def __init__(self, kafka, name):
        app = App(name)
        words = app.stream(f"{name}.words", Word, partitions=2)

        def keep(word: Word) -> Word:
            return word

        for part in ("one", "other"):
            app.service(reads=words, writes=app.stream(f"{name}.{part}", Word), name=part)(keep)
        self.graph, self.kafka = verified(app.graph), kafka
        self.words = words.topic.name
        declare_application(self.graph, kafka)

    def bury(self, *, part="one", code="user.raised", value=GOOD, own=(), at=0, topic=""):
        place = Coordinates(topic or self.words, 0, at)
        error = DataError("it is bad", code=code)
        marks = dead_letter_headers(error, place, part=part, at=datetime.now(UTC))
        with Producer(self.kafka) as producer:
            producer.send(
                self.graph.dead_letters.name, key=b"hello", value=value, headers=[*own, *marks]
            )

    def on_words(self):
        return list(LogReader(self.kafka).read(self.words))


@pytest.fixture
def shop(kafka, topic):
    return Shop(kafka, topic.name("shop"))


def test_a_plan_says_what_would_go_back_and_who_gets_it_and_writes_nothing(shop, kafka):
    shop.bury(at=1, own=[("trace", b"7")])
    shop.bury(at=2, value=b"{}")
    shop.bury(at=3, part="gone")
    shop.bury(at=0, topic="source:feed")
    shop.bury(at=4, own=[(TIMER, b"later")])
    shop.bury(at=5, own=[(GIVEN_BACK, str(MOST_TIMES).encode())])
    shop.bury(at=-1)
    found = plan(shop.graph, kafka, Choice())
    assert found.counts == {
        "back": 1, "unreadable": 1, "nobody": 1, "outside": 1, "cut": 2, "round": 1,
    }  # fmt: skip
    assert found.to == {shop.words: 1}
    assert found.readers == {shop.words: ["one", "other"]}
    assert "word" in found.examples["unreadable"][0][1]
    assert plan(shop.graph, kafka, Choice(again=True)).counts["back"] == 2
    assert shop.on_words() == []
    assert not Topics(kafka).exists(marks_topic(shop.graph).name)


def test_letters_go_back_once_with_their_headers_and_a_mark_and_those_that_were_chosen(shop, kafka):
    shop.bury(at=1, own=[("trace", b"7")])
    shop.bury(at=2, code="user.slow")
    shop.bury(at=1, part="other")  # both parts failed on one record
    first = give_back(shop.graph, kafka, Choice(code="user.raised"))
    assert (first.counts["back"], first.to[shop.words]) == (2, 1)
    (record,) = shop.on_words()
    assert (record.key, record.value) == (b"hello", GOOD)
    assert dict(record.headers) == {"trace": b"7", GIVEN_BACK: b"1"}
    place = read_record_place(f"{shop.words}[0]@2")
    assert give_back(shop.graph, kafka, Choice(record=place)).counts == {"back": 1}
    again = give_back(shop.graph, kafka, Choice())
    assert again.counts == {"done": 3}
    assert len(shop.on_words()) == 2
    assert len(given_back(shop.graph, kafka)) == 3
    # What fails again says how often it was given back; it is another letter.
    shop.bury(at=9, own=record.headers)
    letters = LogReader(kafka).read(shop.graph.dead_letters.name)
    (letter,) = (
        found
        for each in letters
        if (found := read_letter(each.key, each.value, each.headers)).coordinates.offset == 9
    )
    assert (letter.given_back, letter.headers) == (1, (("trace", b"7"),))


def test_more_letters_than_one_transaction_has_go_back_some_at_a_time(shop, kafka):
    place = Coordinates(shop.words, 0, 0)
    with Producer(kafka) as producer:
        for number in range(1200):
            marks = dead_letter_headers(
                DataError("bad", code="user.raised"),
                Coordinates(place.topic, 0, number),
                part="one",
                at=datetime.now(UTC),
            )
            producer.send(shop.graph.dead_letters.name, key=b"hello", value=GOOD, headers=marks)
    some = give_back(shop.graph, kafka, Choice(most=700))
    assert (some.counts["back"], some.more) == (700, True)
    rest = give_back(shop.graph, kafka, Choice())
    assert rest.counts == {"done": 700, "back": 500}
    assert len(shop.on_words()) == 1200


def test_a_giving_that_ended_half_way_leaves_nothing_and_one_beside_it_ends(shop, kafka):
    shop.bury(at=1)
    Topics(kafka).declare([marks_topic(shop.graph)])
    dead = TransactionalProducer(kafka, f"{shop.graph.app}.give-back")
    dead.begin()
    dead.send(shop.words, key=b"hello", value=GOOD)
    dead.settle()
    assert give_back(shop.graph, kafka, Choice()).counts == {"back": 1}
    with pytest.raises(FencedError):
        dead.commit()
    assert len(shop.on_words()) == 1


@pytest.mark.parametrize("text", ["words", "words[0]", "words@1", "words[x]@1", "[0]@1", "w[0]@-1"])
def test_a_place_that_is_none_is_refused_with_how_to_write_it(text):
    with pytest.raises(ConfigurationError, match="no place") as refused:
        read_record_place(text)
    assert "TOPIC" in refused.value.hint
