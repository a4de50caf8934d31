"""What the user's code hands over and no log takes fails its own record, never the service later."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from penstock import App, Output, State, Timer, Timers, delete, on_error, record, send
from penstock.errors import ConfigurationError, UserCodeError
from penstock.services.state.codec import MAX_STATE_BYTES
from penstock.state import ListState, MapState
from penstock.testing import Driver


@record(key="key")
class Order:
    key: str
    n: int = 0


@record(key="key", time="at")
class Sample:
    key: str
    at: int


@record(key="key")
class Told:
    key: str
    text: str


@record(key="key")
class Row:
    key: str


def one_service(body, *, into="told", **options):
    """Return a driver of one service, its input and its output."""
    app = App("demo")
    orders, told = app.stream("orders", Order), app.stream("told", Told)
    rows = app.table("rows", Row)
    writes = {"told": told, "rows": rows}[into]
    options = {"reads": orders, "writes": writes, "name": "serve"} | options
    app.service(**options)(body(told, rows))
    return Driver(app, partitions=1), orders, told


HEADERS = {
    "a number": {"n": 5},
    "a list": {"n": [b"x"]},
    "a bytearray": {"n": bytearray(b"x")},
    "a name that is not a text": {5: b"x"},
    "a name with a zero": {"a\x00b": b"x"},
    "half a character in the name": {"\udc80": b"x"},
    "half a character": {"n": "\udc80"},
    "too many bytes": {"n": b"x" * 100_000},
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
def test_headers_that_cannot_be_sent_fail_their_record(headers):
    def body(told, rows):
        def serve(order: Order) -> Output[Told]:
            return send(told, Told(order.key, "x"), headers=headers if order.n else {"n": "1"})

        return serve

    driver, orders, told = one_service(body)
    driver.pipe(orders, Order("a", 0), Order("b", 1), Order("c", 0))
    sent = driver.read_raw(told)
    assert [raw.key() for raw in sent] == [b"a", b"c"]
    assert sent[0].headers() == (("n", b"1"),)
    assert [letter.code for letter in driver.dead_letters()] == ["data.not-encodable"]


def test_a_policy_hears_of_headers_that_cannot_be_sent():
    def body(told, rows):
        def serve(order: Order) -> Output[Told]:
            return send(told, Told(order.key, "x"), headers={"n": 5})

        return serve

    driver, orders, _ = one_service(body, errors=on_error(produce="stop"))
    with pytest.raises(UserCodeError, match="header 'n' is of int"):
        driver.pipe(orders, Order("a"))


def test_a_row_whose_key_is_too_large_is_not_deleted():
    def body(told, rows):
        def serve(order: Order) -> Output[Row]:
            return delete(rows, "x" * (2 << 20))

        return serve

    driver, orders, _ = one_service(body, into="rows")
    driver.pipe(orders, Order("a"))
    assert "its key has 2097152 bytes" in driver.dead_letters()[0].reason


LARGE = "x" * MAX_STATE_BYTES
STATES = {
    "a text": lambda states: states.text.set(LARGE),
    "a text of escapes": lambda states: states.text.set("\x01" * 200_000),
    "a list as a whole": lambda states: states.items.set([LARGE]),
    "a list item by item": lambda states: [states.items.append("x" * 100_000) for _ in range(12)],
    "an entry": lambda states: states.names.set("n", LARGE),
    "the name of an entry": lambda states: states.names.set(LARGE, ""),
    "a number of many digits": lambda states: states.number.set(10**5000),
    "no number": lambda states: states.real.set(float("nan")),
    "no number in a list": lambda states: states.real.set([1.0, float("inf")]),
}


@pytest.mark.parametrize("change", STATES.values(), ids=STATES.keys())
def test_a_state_that_no_changelog_takes_fails_its_record_and_is_taken_back(change):
    def body(told, rows):
        def serve(
            order: Order,
            *,
            text: State[str],
            items: ListState[str],
            names: MapState[str, str],
            number: State[int],
            real: State[list[float | None] | float | None],
        ) -> Told:
            number.set(number.get(0) + 1)
            if order.n:
                change(
                    SimpleNamespace(text=text, items=items, names=names, number=number, real=real)
                )
            return Told(order.key, f"{number.get()} {text.get()} {len(items)} {len(names)}")

        return serve

    driver, orders, told = one_service(body)
    driver.pipe(orders, Order("a"), Order("a", 1), Order("a"))
    assert [each.text for each in driver.read(told)] == ["1 None 0 0", "2 None 0 0"]
    assert len(driver.dead_letters()) == 1
    driver.crash()
    driver.restart()
    driver.pipe(orders, Order("a"))
    assert driver.read(told)[-1].text == "3 None 0 0"


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMERS = {
    "after the last year": {"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))},
    "before the first year": {"at": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))},
    "so long after": {"after": timedelta(days=3_000_000)},
    "a payload too large": {"at": NOON, "payload": LARGE},
    "a name that is not a text": {"name": "\udc80", "at": NOON},
    "a payload of no number": {"at": NOON, "payload": [float("nan")]},
}


@pytest.mark.parametrize("time", ["event", "processing"])
@pytest.mark.parametrize("options", TIMERS.values(), ids=TIMERS.keys())
def test_a_timer_that_cannot_be_kept_fails_its_record(options, time):
    app = App("demo")
    samples, told = app.stream("samples", Sample), app.stream("told", Told)

    @app.service(reads=samples, writes=told, name="serve")
    class Serve:
        def process(self, sample: Sample, timers: Timers) -> Told:
            if sample.key == "bad":
                timers.set(**{"name": "bell", "time": time} | options)
            return Told(sample.key, "x")

        def on_timer(self, timer: Timer) -> Told:
            return Told(timer.key, "due")

    driver = Driver(app, partitions=1)
    at = round(NOON.timestamp() * 1000)
    driver.pipe(samples, Sample("a", at), Sample("bad", at + 1), Sample("b", at + 2))
    driver.crash()
    driver.restart()
    driver.advance_clock("1h")
    assert [each.key for each in driver.read(told)] == ["a", "b"]
    assert len(driver.dead_letters()) == 1


@pytest.mark.parametrize("at", [-(10**14), -(10**17), 10**17])
def test_an_event_time_that_is_no_instant_moves_nothing_and_hurts_nobody(at):
    app = App("demo")
    samples, told = app.stream("samples", Sample), app.stream("told", Told)

    @app.service(reads=samples, writes=told, name="serve")
    class Serve:
        def process(self, sample: Sample, timers: Timers) -> None:
            timers.set(f"bell of {sample.key}", at=NOON)

        def on_timer(self, timer: Timer) -> Told:
            return Told(timer.key, f"{timer.event_time_at:%H:%M}")

    driver = Driver(app, partitions=1)
    driver.pipe_raw(samples, b"far", b'{"key":"far","at":%d}' % at)
    driver.pipe(samples, Sample("a", round(NOON.timestamp() * 1000)))
    assert {each.text for each in driver.read(told)} == {"12:00"}


def test_an_error_whose_text_is_no_text_is_still_a_dead_letter():
    def body(told, rows):
        def serve(order: Order) -> Told:
            raise ValueError("\udc80")

        return serve

    driver, orders, _ = one_service(body)
    driver.pipe(orders, Order("a"))
    assert r"\udc80" in driver.dead_letters()[0].reason


def kinds():
    def value(order: Order, total: State[int]) -> None:
        total.set(total.get(0) + 1)

    def listed(order: Order, total: ListState[int]) -> None:
        total.append(1)

    def mapped(order: Order, total: MapState[str, int]) -> None:
        total.set("n", total.get("n", 0) + 1)

    def named(order: Order, total: MapState[int, int]) -> None:
        total.set(1, total.get(1, 0) + 1)

    def without(order: Order, other: State[int]) -> None:
        other.set(1)

    return {each.__name__: each for each in (value, listed, mapped, named, without)}


def restarted(driver, function):
    """Return a driver of another version of the service, on the changelog of the one before."""
    after, orders, _ = one_service(lambda *_: function, writes=())
    name = "demo.serve.changelog"
    changelog = driver._log.read((name, 0))
    after.crash()
    for raw in changelog:
        after._log.append(name, key=raw.key(), value=raw.value(), partition=0)
    committed = driver._log.committed("demo.serve")
    for partition in committed:
        for raw in driver._log.read(partition):
            after._log.append(partition[0], key=raw.key(), value=raw.value(), partition=0)
    after._log.commit("demo.serve", committed)
    after.restart()
    return after, orders


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("value", "mapped"),
        ("mapped", "value"),
        ("listed", "mapped"),
        ("mapped", "listed"),
        ("mapped", "named"),
        ("named", "mapped"),
        ("value", "listed"),
        ("listed", "value"),
    ],
)
def test_a_state_of_another_kind_under_its_old_name_is_refused(one, two):
    before, orders, _ = one_service(lambda *_: kinds()[one], writes=())
    before.pipe(orders, Order("a"), Order("b"))
    with pytest.raises(ConfigurationError) as raised:
        restarted(before, kinds()[two])
    assert raised.value.code == "state.unreadable"
    assert "penstock reset" in raised.value.hint


def test_a_kind_is_remembered_while_the_state_is_away():
    before, orders, _ = one_service(lambda *_: kinds()["value"], writes=())
    before.pipe(orders, Order("a"))
    between, orders = restarted(before, kinds()["without"])
    between.pipe(orders, Order("b"))
    with pytest.raises(ConfigurationError, match=r"one value for each key.* a map for each key"):
        restarted(between, kinds()["mapped"])
