import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import App, Context, Output, State, delete, feedback, record
from penstock.core.status.report import Counts
from penstock.errors import DataError, DefinitionError
from penstock.testing import Driver


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


@record(key="sensor", time="at")
class Reading:
    sensor: str
    at: datetime
    celsius: float


def wordcount(delivery="exactly_once"):
    app: Any = App("wordcount")
    app.lines = app.stream("lines", Line)
    app.words = app.stream("words", Word)
    app.counts = app.stream("counts", Count)
    app.latest = app.table("latest", Count)

    @app.service(reads=app.lines, writes=app.words, delivery=delivery)
    def split(line: Line) -> Iterable[Word]:
        if "poison" in line.text:
            raise ValueError("poison")
        return [Word(word) for word in line.text.split()]

    @app.service(reads=app.words, writes=app.counts, delivery=delivery)
    def count(word: Word, total: State[int]) -> Count:
        total.set(total.get(0) + 1)
        return Count(word.word, total.get(0))

    @app.service(reads=app.counts, writes=app.latest, delivery=delivery)
    def keep(count: Count) -> Count:
        return count

    app.split, app.count, app.keep = split, count, keep
    return app


@pytest.fixture
def app():
    return wordcount()


def totals(driver, app):
    return {word: found.count for word, found in driver.table(app.latest).items()}


def test_records_flow_through_a_chain_of_services(app):
    driver = Driver(app)
    driver.pipe(app.lines, Line("to be or not to be"))
    assert totals(driver, app) == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert driver.counts(app.count) == Counts(received=6, passed=6, written=6)


def test_reading_gives_what_is_new_since_the_last_reading(app):
    driver = Driver(app)
    driver.pipe(app.words, Word("a"), Word("a"))
    assert driver.read(app.counts) == [Count("a", 1), Count("a", 2)]
    assert driver.read(app.counts) == []
    driver.pipe(app.words, Word("a"))
    assert driver.read(app.counts) == [Count("a", 3)]


def test_raw_reading_gives_key_headers_place_and_time(app):
    driver = Driver(app)
    at = datetime(2025, 3, 1, tzinfo=UTC)
    driver.pipe(app.words, Word("a"), at=at, headers={"trace": b"7"})
    (raw,) = driver.read_raw(app.words)
    assert (raw.topic(), raw.offset(), raw.key()) == ("words", 0, b"a")
    assert raw.headers() == (("trace", b"7"),)
    assert raw.timestamp()[1] == round(at.timestamp() * 1000)


def test_bad_records_become_dead_letters_and_the_counts_add_up(app):
    driver = Driver(app)
    driver.pipe(app.lines, Line("a"), Line("poison"), Line("a"))
    driver.pipe_raw(app.words, b"b", b"{broken", headers={"trace": b"7"})
    driver.pipe(app.words, Word("a"), key=b"z")
    raised, broken, mismatch = driver.dead_letters()
    assert (raised.code, raised.part, raised.value) == (
        "user.raised",
        "split",
        b'{"text":"poison"}',
    )
    assert (broken.code, broken.value) == ("data.not-json", b"{broken")
    assert broken.headers == (("trace", b"7"),)
    assert broken.coordinates.topic == "words"
    assert (mismatch.code, mismatch.key) == ("data.key-mismatch", b"z")
    assert totals(driver, app) == {"a": 2}
    assert driver.counts(app.split) == Counts(received=3, passed=2, dead_lettered=1, written=2)
    assert driver.counts(app.count).balanced


def test_reading_bytes_that_do_not_decode_says_so(app):
    driver = Driver(app)
    driver.pipe_raw(app.words, b"b", b"{broken")
    with pytest.raises(DataError, match="not a Word"):
        driver.read(app.words)


def test_the_state_of_a_service_can_be_looked_at(app):
    driver = Driver(app)
    driver.pipe(app.words, Word("a"), Word("a"))
    assert driver.state(app.count, "a") == 2
    assert driver.state(app.count, b"a", name="total") == 2
    assert driver.state(app.count, "never") is None
    with pytest.raises(LookupError, match="it has total"):
        driver.state(app.count, "a", name="sum")
    with pytest.raises(LookupError, match="it has none"):
        driver.state(app.split, "a")


def test_a_table_forgets_a_key_whose_value_is_null(app):
    driver = Driver(app)
    driver.pipe(app.latest, Count("a", 1), Count("b", 1))
    driver.pipe_raw(app.latest, b"a", None)
    assert driver.table(app.latest) == {"b": Count("b", 1)}


def test_exactly_once_results_are_seen_when_they_are_committed(app):
    driver = Driver(app, auto_commit=False)
    driver.pipe(app.words, Word("a"))
    assert driver.read(app.counts) == []
    assert driver.counts(app.count) == Counts(received=1, in_flight=1)
    driver.commit()
    assert driver.read(app.counts) == [Count("a", 1)]
    assert totals(driver, app) == {}
    driver.commit(app.keep)
    assert totals(driver, app) == {"a": 1}


def test_a_crash_takes_back_what_was_not_committed_and_a_restart_does_it_again(app):
    driver = Driver(app, auto_commit=False)
    driver.pipe(app.words, Word("a"))
    driver.commit()
    driver.pipe(app.words, Word("a"), Word("b"))
    driver.crash()
    assert driver.counts(app.count) == Counts(received=1, passed=1, written=1)
    driver.restart()
    driver.commit()
    assert sorted(driver.read(app.counts), key=lambda found: (found.word, found.count)) == [
        Count("a", 1),
        Count("a", 2),
        Count("b", 1),
    ]
    assert driver.counts(app.count) == Counts(received=3, passed=3, written=3)


def test_a_dead_service_handles_nothing_while_the_others_go_on(app):
    driver = Driver(app)
    driver.crash(app.count)
    driver.pipe(app.lines, Line("a b"))
    assert len(driver.read(app.words)) == 2
    assert driver.read(app.counts) == []
    with pytest.raises(LookupError, match=r"'count' is down: restart\(\)"):
        driver.state(app.count, "a")
    driver.restart()
    assert totals(driver, app) == {"a": 1, "b": 1}


def test_at_least_once_results_are_seen_at_once_and_come_again_after_a_crash():
    app = wordcount("at_least_once")
    driver = Driver(app, auto_commit=False)
    driver.pipe(app.words, Word("a"))
    assert driver.read(app.counts) == [Count("a", 1)]
    driver.crash(app.count)
    driver.restart()
    assert driver.read(app.counts) == [Count("a", 1)]


def test_the_clock_is_the_test_s_own():
    app = App("clocks")
    words, counts = app.stream("words", Word), app.stream("counts", Count)

    @app.service(reads=words, writes=counts)
    def age(word: Word, where: Context) -> Count:
        return Count(word.word, int((where.now_at - where.written_at).total_seconds()))

    start_at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    driver = Driver(app, start_at=start_at)
    driver.advance_clock("90s")
    driver.pipe(words, Word("a"), at=start_at)
    assert driver.read(counts) == [Count("a", 90)]
    assert driver.now_at == start_at + timedelta(seconds=90)


def test_event_time_follows_the_records_and_the_test_and_never_goes_back():
    app = App("weather")
    readings = app.stream("readings", Reading)
    driver = Driver(app)
    assert driver.event_time_at is None
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    driver.pipe(readings, Reading("s", noon, 20.0), Reading("s", noon - timedelta(hours=1), 19.0))
    assert driver.event_time_at == noon
    driver.advance_event_time("10m")
    driver.advance_event_time(noon + timedelta(hours=1))
    assert driver.event_time_at == noon + timedelta(hours=1)
    with pytest.raises(ValueError, match="cannot go back"):
        driver.advance_event_time(noon)


def cycle_of(limit):
    app: Any = App("rounds")
    app.counts = app.stream("counts", Count)

    @app.service(reads=app.counts, writes=feedback(app.counts))
    def again(count: Count) -> Count | None:
        return Count(count.word, count.count + 1) if count.count < limit else None

    return app


def test_a_cycle_that_ends_runs_to_its_end():
    app = cycle_of(50)
    driver = Driver(app)
    driver.pipe(app.counts, Count("a", 0))
    assert driver.read(app.counts)[-1] == Count("a", 50)


def test_an_endless_cycle_is_found_out():
    app = cycle_of(10**9)
    with pytest.raises(DefinitionError, match="still go round after 1000 rounds: again"):
        Driver(app).pipe(app.counts, Count("a", 0))


def test_an_application_with_problems_is_refused_with_all_of_them():
    app = App("broken")
    words = app.stream("words", Word)

    @app.service(reads=words)
    def nothing(word): ...

    with pytest.raises(DefinitionError, match="2 problems"):
        Driver(app)


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_answer_does_not_depend_on_the_number_of_partitions(app, partitions):
    driver = Driver(app, partitions=partitions)
    driver.pipe(app.lines, *(Line(text) for text in ("a b", "b c", "c d a")))
    assert totals(driver, app) == {"a": 2, "b": 2, "c": 2, "d": 1}


def test_importing_the_test_kit_brings_in_neither_kafka_nor_spark():
    code = "import sys, penstock.testing; print([m for m in ('confluent_kafka', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_service_deletes_rows_of_the_table_it_writes():
    app = App("forgetful")
    words, latest = app.stream("words", Word), app.table("latest", Count)
    copies = app.stream("copies", Count)

    @app.service(reads=words, writes=latest)
    def count(word: Word, total: State[int]) -> Count | Output[Count]:
        total.set((total.get(0) + 1) % 3)
        return Count(word.word, total.get(0)) if total.get() else delete(latest, word.word)

    @app.service(reads=latest, writes=copies)
    def copy(count: Count) -> Count:
        return count

    driver = Driver(app)
    driver.pipe(words, *map(Word, ["a", "b", "a", "a"]))
    assert driver.table(latest) == {"b": Count("b", 1)}
    assert sorted(map(str, driver.read(latest))) == sorted(
        map(str, [Count("a", 1), Count("a", 2), Count("b", 1)])
    )
    assert len(driver.read(copies)) == 3
    assert driver.counts(copy) == Counts(received=4, passed=3, filtered=1, written=3)
    driver.pipe(words, Word("a"))
    assert driver.table(latest)["a"] == Count("a", 1)


def test_a_test_deletes_a_row_too():
    app = App("forgetful")
    latest, copies = app.table("latest", Count), app.table("copies", Count)

    @app.service(reads=latest, writes=copies)
    def copy(count: Count) -> Count:
        return count

    driver = Driver(app)
    driver.pipe(latest, Count("a", 1))
    driver.delete(latest, "a")
    assert (driver.table(latest), driver.table(copies)) == ({}, {"a": Count("a", 1)})
    with pytest.raises(TypeError, match="5 is not a key of Count"):
        driver.delete(latest, 5)


def test_what_is_no_record_of_a_stream_is_refused_where_it_is_piped():
    app = wordcount()
    driver = Driver(app)
    with pytest.raises(TypeError, match="lines holds Line, and was given Word"):
        driver.pipe(app.lines, Word("x"))
    with pytest.raises(TypeError, match="lines holds Line, and was given dict"):
        driver.pipe(app.lines, {"text": "x"})
    with pytest.raises(DataError, match="Expected `str`, got `int`"):
        driver.pipe(app.lines, Line("a"), Line(5))
    assert driver.read(app.lines) == []  # none of several is there
    assert driver.dead_letters() == []


def test_what_is_no_stream_or_table_of_the_application_is_named():
    app = wordcount()
    driver = Driver(app)
    for call in (driver.read, driver.table, driver.read_raw, driver.pipe):
        with pytest.raises(TypeError, match="has no stream or table 'counts'; pass what app"):
            call("counts")
    with pytest.raises(TypeError, match="has no stream or table 'split'"):
        driver.read(app.split)
    with pytest.raises(TypeError, match="words is not a table"):
        driver.table(app.words)


def test_the_state_of_a_key_of_several_fields_is_found_by_a_tuple():
    @record(key=("room", "floor"))
    class Sign:
        room: str
        floor: int

    house = App("house")
    signs = house.stream("signs", Sign)

    @house.service(reads=signs)
    def tally(sign: Sign, seen: State[int]) -> None:
        seen.set(seen.get(0) + 1)

    driver = Driver(house)
    driver.pipe(signs, Sign("hall", 2), Sign("hall", 2))
    assert driver.state(tally, ("hall", 2)) == 2
    assert driver.state(tally, ("hall", 3)) is None
    with pytest.raises(TypeError, match="not a key of Sign, which is \\(room: text, floor: int\\)"):
        driver.state(tally, 2)
