import sys
from asyncio import CancelledError
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from penstock import App, Context, State, record
from penstock.core.status.report import Counts
from penstock.errors import UserCodeError
from penstock.services.step.step import Step
from penstock.testing.memorylog import MemoryRecord

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
WRITTEN_AT = datetime(2025, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)


@record(key="word")
class Word:
    word: str
    weight: int = 1


@record(key="word")
class Count:
    word: str
    count: int


app = App("demo")
words = app.stream("words", Word)
counts = app.stream("counts", Count)
latest = app.table("latest", Count)


def raw(value, *, key=b"a", offset=0, topic="words", headers=()):
    return MemoryRecord(
        (topic, 1), offset, key=key, value=value, headers=headers, written_at=WRITTEN_AT
    )


def word(text, *, offset=0, weight=1):
    value = f'{{"word":"{text}","weight":{weight}}}'.encode()
    return raw(value, key=text.encode(), offset=offset)


def step_of(function, *, reads=words, writes=counts):
    service = App("demo").service(reads=reads, writes=writes, name="count")(function)
    return Step(app.graph, service, clock=lambda: NOW_AT)


def run(step, *records, topic="words"):
    sent = []

    def send(topic, *, key, value, headers=(), partition=None):
        sent.append((topic, key, value, dict(headers)))

    step.run(topic, records, send)
    return sent


def settled(step):
    step.tally.commit()
    return step.tally.counts()


def count(word: Word, total: State[int]) -> Count | None:
    if word.weight < 0:
        total.set(-1000)
        raise ValueError(f"weight {word.weight}")
    if word.weight == 0:
        return None
    total.set(total.get(0) + word.weight)
    return Count(word.word, total.get(0))


def test_a_record_gives_its_outputs_and_moves_its_state():
    step = step_of(count)
    sent = run(step, word("a"), word("b"), word("a", weight=5))
    assert [value for _, _, value, _ in sent] == [
        b'{"word":"a","count":1}',
        b'{"word":"b","count":1}',
        b'{"word":"a","count":6}',
    ]
    assert settled(step) == Counts(received=3, passed=3, written=3)


def test_a_record_that_gives_nothing_is_filtered():
    step = step_of(count)
    assert run(step, word("a", weight=0)) == []
    assert settled(step) == Counts(received=1, filtered=1)


def test_a_service_that_writes_nothing_passes_what_it_handles():
    def watch(word: Word, seen: State[int]) -> None:
        seen.set(1)

    step = step_of(watch, writes=())
    run(step, word("a"))
    assert settled(step) == Counts(received=1, passed=1)


def test_a_record_that_does_not_decode_is_dead_lettered_with_its_bytes_and_place():
    step = step_of(count)
    bad = raw(b"{broken", key=b"k", offset=41, headers=(("trace", b"7"),))
    ((topic, key, value, headers),) = run(step, bad)
    assert (topic, key, value) == ("demo.dead-letters", b"k", b"{broken")
    assert headers["trace"] == b"7"
    assert headers["penstock.code"] == b"data.not-json"
    assert headers["penstock.topic"] == b"words"
    assert headers["penstock.partition"] == b"1"
    assert headers["penstock.offset"] == b"41"
    assert headers["penstock.part"] == b"count"
    assert headers["penstock.at"] == NOW_AT.isoformat().encode()
    assert settled(step) == Counts(received=1, dead_lettered=1)
    assert step.last_dead_letter.startswith("words[1]@41: not a Word")


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        (b"a", b"\xff\xfe", b"data.not-json"),
        (b"a", b'{"word":"a","weight":"x"}', b"data.wrong-type"),
        (b"a", b'{"weight":1}', b"data.missing-field"),
        (b"a", b'{"word":"a","weight":NaN}', b"data.not-json"),
        (b"a", b'{"word":"a","x":' + b"[" * 100_000, b"data.too-deep"),
        (b"a", b'{"word":"' + b"a" * 5_000_000 + b'"}', b"data.too-large"),
        (None, b'{"word":"a"}', b"data.null-key"),
        (b"b", b'{"word":"a"}', b"data.key-mismatch"),
        (b"a", None, b"data.null-value"),
    ],
)
def test_every_kind_of_poison_is_dead_lettered_and_the_stream_goes_on(key, value, code):
    step = step_of(count)
    dead, good = run(step, raw(value, key=key), word("a"))
    assert (dead[0], dead[1], dead[2]) == ("demo.dead-letters", key, value)
    assert dead[3]["penstock.code"] == code
    assert good[2] == b'{"word":"a","count":1}'
    assert settled(step) == Counts(received=2, passed=1, dead_lettered=1, written=1)


def test_fields_nobody_declared_are_no_poison():
    step = step_of(count)
    assert len(run(step, raw(b'{"word":"a","extra":[1]}'))) == 1
    assert settled(step).passed == 1


def test_a_record_the_function_raises_on_is_dead_lettered_and_its_state_taken_back():
    step = step_of(count)
    sent = run(step, word("a"), word("a", weight=-1, offset=1), word("a"))
    dead = sent[1]
    assert dead[3]["penstock.code"] == b"user.raised"
    reason = dead[3]["penstock.reason"].decode()
    assert reason.startswith("count raised ValueError: weight -1 (test_step.py:")
    assert sent[2][2] == b'{"word":"a","count":2}'
    assert settled(step) == Counts(received=3, passed=2, dead_lettered=1, written=2)


def test_a_function_that_ends_the_process_ends_its_record():
    def count(word: Word) -> Count:
        sys.exit(f"no use for {word.word}")

    step = step_of(count)
    ((topic, _, _, headers),) = run(step, word("a"))
    assert topic == "demo.dead-letters"
    assert b"SystemExit: no use for a" in headers["penstock.reason"]


@pytest.mark.parametrize("ends", [CancelledError, GeneratorExit, StopIteration, RecursionError])
@pytest.mark.parametrize("as_generator", [True, False])
def test_whatever_a_call_raises_is_the_end_of_its_record_alone(ends, as_generator):
    def plain(word: Word, total: State[int]) -> Iterable[Count]:
        total.set(total.get(0) + 1)
        if word.weight == 2:
            raise ends
        return [Count(word.word, total.get(0))]

    def generator(word: Word, total: State[int]) -> Iterable[Count]:
        yield from plain(word, total)

    step = step_of(generator if as_generator else plain)
    sent = run(step, word("a"), word("a", weight=2), word("a"))
    assert [topic for topic, *_ in sent] == ["counts", "demo.dead-letters", "counts"]
    assert sent[-1][2] == b'{"word":"a","count":2}'


def test_an_interrupt_from_the_keyboard_is_no_error_of_a_record():
    def interrupt(word: Word) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(step_of(interrupt, writes=()), word("a"))


def test_an_interrupt_in_a_thread_of_a_worker_is_an_error_of_its_record():
    def interrupt(word: Word) -> None:
        raise KeyboardInterrupt

    step = step_of(interrupt, writes=())
    with ThreadPoolExecutor(1) as thread:
        ((topic, *_),) = thread.submit(run, step, word("a")).result()
    assert topic == "demo.dead-letters"


def test_a_class_that_cannot_be_made_is_blamed():
    class Broken:
        def __init__(self) -> None:
            raise RuntimeError("no database")

        def process(self, word: Word) -> None: ...

    with pytest.raises(UserCodeError, match="cannot be made: it raised RuntimeError: no database"):
        step_of(Broken, writes=())


def test_a_generator_that_fails_half_way_has_written_nothing():
    def spread(word: Word) -> Iterable[Count]:
        yield Count(word.word, 1)
        raise RuntimeError("half-way")

    sent = run(step_of(spread), word("a"))
    assert [topic for topic, *_ in sent] == ["demo.dead-letters"]


def test_an_output_without_a_stream_blames_the_service():
    def confuse(word: Word) -> Count:
        return word

    ((_, _, _, headers),) = run(step_of(confuse), word("a"))
    assert headers["penstock.code"] == b"user.raised"
    assert headers["penstock.reason"].startswith(b"count gave what cannot be used: it gives a Word")


def test_an_output_whose_key_is_not_of_its_type_is_a_dead_letter_of_the_service():
    def confuse(word: Word) -> Count:
        return Count(None, 1)

    ((topic, _, _, headers),) = run(step_of(confuse), word("a"))
    assert topic == "demo.dead-letters"
    assert headers["penstock.code"] == b"data.not-encodable"
    assert b"its key" in headers["penstock.reason"]


def test_a_state_value_of_the_wrong_type_blames_the_record_and_is_taken_back():
    def confuse(word: Word, total: State[int]) -> Count:
        total.set("three")
        return Count(word.word, 1)

    step = step_of(confuse)
    ((topic, _, _, headers),) = run(step, word("a"))
    assert topic == "demo.dead-letters"
    assert b"a state of int was given str" in headers["penstock.reason"]
    assert len(step.states) == 0


def test_an_exception_whose_text_raises_is_still_told():
    class Silent(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError

    def shout(word: Word) -> Count:
        raise Silent

    ((_, _, _, headers),) = run(step_of(shout), word("a"))
    assert headers["penstock.reason"].startswith(b"count raised Silent (")


def test_what_sending_raises_goes_through():
    def broken(topic, **named):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        step_of(count).run("words", [word("a")], broken)


def test_a_context_tells_where_the_record_stands():
    seen = []

    def look(word: Word, where: Context) -> None:
        seen.append(where)

    run(
        step_of(look, writes=()), raw(b'{"word":"a"}', offset=7, headers=(("h", b"1"), ("n", None)))
    )
    (context,) = seen
    assert str(context.coordinates) == "words[1]@7"
    assert (context.written_at, context.now_at) == (WRITTEN_AT, NOW_AT)
    assert context.key == b"a"
    assert context.headers == {"h": b"1", "n": b""}


@pytest.mark.parametrize("order", ["state first", "context first", "by keyword"])
def test_states_and_context_may_be_asked_for_in_any_order(order):
    def state_first(word: Word, total: State[int], last: State[str], where: Context) -> None:
        total.set(where.coordinates.offset)
        last.set(word.word)

    def context_first(word: Word, where: Context, total: State[int], last: State[str]) -> None:
        state_first(word, total, last, where)

    def by_keyword(word: Word, *, last: State[str], where: Context, total: State[int]) -> None:
        state_first(word, total, last, where)

    function = {
        "state first": state_first,
        "context first": context_first,
        "by keyword": by_keyword,
    }[order]
    step = step_of(function, writes=())
    run(step, word("a", offset=9))
    assert dict(step.states.changes()) == {b"total\x00a": b"9", b"last\x00a": b'"a"'}


def test_a_deletion_in_a_table_is_filtered_not_dead():
    def follow(count: Count) -> None: ...

    step = step_of(follow, reads=latest, writes=())
    assert run(step, raw(None, topic="latest"), topic="latest") == []
    assert settled(step) == Counts(received=1, filtered=1)
