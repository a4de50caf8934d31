"""Lists, maps and times to live: the kinds of state beside the plain value."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, State, record, ttl
from penstock.core.graph.signature import read_signature
from penstock.core.graph.state import CallScope, StateSpec
from penstock.core.instants import micros
from penstock.services.state.states import States
from penstock.state import ListState, MapState
from penstock.testing import Driver
from penstock.testing.clock import ManualClock

CLOCK = ManualClock()


class Subject(States):
    """States with one handle each, as a task has them."""

    def __init__(self, *specs, clock=CLOCK):
        super().__init__(specs, changelog="app.count.changelog", clock=clock)
        self.here = CallScope()
        self.given = self.handles(self.here)

    def at(self, key):
        self.here.key = key
        self.here.undo.clear()
        return self

    def __getitem__(self, name):
        return self.given[name]


def rebuilt(subject, *specs):
    """Return states made from the changelog of others."""
    fresh = Subject(*specs)
    for key, value in subject.changes():
        fresh.apply(key, value)
    return fresh


LIST = StateSpec("recent", int, "list")
MAP = StateSpec("pages", int, "map", str)


def test_a_list_grows_and_is_one_value_on_the_changelog():
    subject = Subject(LIST).at(b"a")
    recent = subject["recent"]
    assert (recent.get(), len(recent)) == ([], 0)
    recent.append(1)
    recent.extend([2, 3])
    recent.extend([])
    assert (list(recent), len(recent)) == ([1, 2, 3], 3)
    assert dict(subject.changes()) == {b"recent\x00a": b"[1,2,3]"}
    assert rebuilt(subject, LIST).at(b"a")["recent"].get() == [1, 2, 3]
    recent.set([9])
    assert recent.get() == [9]
    recent.set([])
    assert dict(subject.changes()) == {b"recent\x00a": None}


def test_a_list_is_extended_by_all_items_or_none():
    subject = Subject(LIST).at(b"a")
    with pytest.raises(TypeError, match="a state of int was given str"):
        subject["recent"].extend([1, "two"])
    assert subject["recent"].get() == []


def test_taking_back_an_append_gives_the_list_as_it_was():
    subject = Subject(LIST).at(b"a")
    subject["recent"].append(1)
    subject.at(b"a")["recent"].append(2)
    subject["recent"].append(3)
    subject.here.take_back()
    assert subject["recent"].get() == [1]


def test_a_map_writes_only_the_entries_that_changed():
    subject = Subject(MAP).at(b"a")
    pages = subject["pages"]
    pages.set("home", 1)
    pages.set("cart", 2)
    subject.at(b"b")["pages"].set("home", 7)
    subject.settle()
    subject.at(b"a")
    pages.set("cart", 3)
    assert (pages.get("cart"), pages.get("none"), pages.get("none", 0)) == (3, None, 0)
    assert list(subject.changes()) == [(b'pages\x00\x00\x00\x00\x01a"cart"', b"3")]
    assert dict(pages.items()) == {"cart": 3, "home": 1}
    assert (list(pages), len(pages), "home" in pages, "x" in pages) == (
        ["cart", "home"],
        2,
        True,
        False,
    )
    pages.delete("home")
    assert dict(pages.items()) == {"cart": 3}
    pages.clear()
    assert dict(pages.items()) == {}
    assert dict(subject.at(b"b")["pages"].items()) == {"home": 7}


def test_a_map_reads_as_a_dict_does():
    pages = Subject(MAP).at(b"a")["pages"]
    pages["home"] = 1
    pages["cart"] = 2
    assert [(name, count) for name, count in pages.items()] == [("cart", 2), ("home", 1)]
    assert (list(pages.keys()), list(pages.values())) == (["cart", "home"], [2, 1])
    assert dict(pages) == {**pages} == {"cart": 2, "home": 1}
    assert (pages["home"], bool(pages)) == (1, True)
    with pytest.raises(KeyError, match="none"):
        pages["none"]
    with pytest.raises(KeyError, match="none"):
        del pages["none"]
    for name in pages:
        del pages[name]
    assert (len(pages), bool(pages)) == (0, False)


def test_the_pairs_of_a_map_are_those_of_the_moment():
    pages = Subject(MAP).at(b"a")["pages"]
    pages.set("home", 1)
    pairs = pages.items()
    pages.set("cart", 2)
    assert dict(pairs) == {"home": 1}


def test_a_list_reads_as_a_list_does():
    recent = Subject(LIST).at(b"a")["recent"]
    recent.extend([1, 2, 3])
    assert (recent[0], recent[-1], recent[1:]) == (1, 3, [2, 3])
    assert (2 in recent, 9 in recent, len(recent), bool(recent)) == (True, False, 3, True)
    with pytest.raises(IndexError):
        recent[3]


def test_a_state_is_not_taken_for_its_value():
    total = Subject(StateSpec("total", int)).at(b"a")["total"]
    with pytest.raises(TypeError, match=r"test its value with get\(\)"):
        assert total


def test_taking_back_brings_the_entries_of_a_map_back():
    subject = Subject(MAP).at(b"a")
    subject["pages"].set("home", 1)
    subject.at(b"a")["pages"].clear()
    subject["pages"].set("cart", 2)
    subject.here.take_back()
    assert dict(subject["pages"].items()) == {"home": 1}


@pytest.mark.parametrize("name", [1, None, ["home"]])
def test_a_name_of_another_type_is_refused(name):
    subject = Subject(MAP).at(b"a")
    with pytest.raises(TypeError):
        subject["pages"].set(name, 1)


KEYS = st.sampled_from([b"", b"a", b"ab", b"\x00\x00\x00\x01"])


@given(
    st.lists(
        st.tuples(
            KEYS, st.sampled_from(["x", "xy", ""]), st.none() | st.integers(0, 3), st.booleans()
        ),
        max_size=40,
    )
)
def test_maps_rebuilt_from_their_changelog_are_the_maps(steps):
    subject, model, log = Subject(MAP), {}, []
    for key, name, value, commits in steps:
        pages = subject.at(key)["pages"]
        if value is None:
            pages.delete(name)
            model.get(key, {}).pop(name, None)
        else:
            pages.set(name, value)
            model.setdefault(key, {})[name] = value
        if commits:
            log += subject.changes()
            subject.settle()
    log += subject.changes()
    fresh = Subject(MAP)
    for key, value in log:
        fresh.apply(key, value)
    for key, entries in model.items():
        assert dict(fresh.at(key)["pages"].items()) == entries
        assert list(subject.at(key)["pages"].items()) == list(fresh.at(key)["pages"].items())


HOUR = timedelta(hours=1)


def test_what_was_not_written_for_its_time_to_live_is_gone():
    clock = ManualClock()
    subject = Subject(StateSpec("seen", int, ttl=HOUR), clock=clock).at(b"a")
    subject["seen"].set(1)
    clock.advance("59m")
    assert subject["seen"].get() == 1
    clock.advance("1m")
    assert subject["seen"].get(0) == 0


def test_sweeping_forgets_what_has_expired_and_spares_what_was_written_again():
    clock = ManualClock()
    subject = Subject(StateSpec("seen", int, ttl=HOUR), clock=clock)
    subject.at(b"old")["seen"].set(1)
    subject.at(b"fresh")["seen"].set(1)
    subject.settle()
    clock.advance("30m")
    subject.at(b"fresh")["seen"].set(2)
    clock.advance("30m")
    assert subject.sweep(micros(clock()))
    assert {key: value is None for key, value in subject.changes()} == {
        b"seen\x00old": True,
        b"seen\x00fresh": False,
    }
    assert not subject.sweep(micros(clock()))
    clock.advance("30m")
    assert subject.sweep(micros(clock()))
    assert len(subject) == 0
    assert subject.expires_at() is None


def test_a_key_written_for_ever_waits_once_to_expire():
    clock = ManualClock()
    subject = Subject(StateSpec("seen", int, ttl=HOUR), clock=clock).at(b"a")
    for number in range(1000):
        subject["seen"].set(number)
        subject["seen"].delete()
    assert len(subject.cells[0].expiries) == 1


def test_expiry_is_restored_and_may_be_declared_later_or_dropped():
    clock = ManualClock()
    expiring, lasting = StateSpec("seen", str, ttl=HOUR), StateSpec("seen", str)
    subject = Subject(expiring, clock=clock).at(b"a")
    subject["seen"].set("12 o'clock")
    ((key, value),) = subject.changes()
    clock.advance("59m")
    same = Subject(expiring, clock=clock).at(b"a")
    same.apply(key, value)
    assert same["seen"].get() == "12 o'clock"
    clock.advance("1m")
    assert same["seen"].get() is None
    without = Subject(lasting, clock=clock).at(b"a")
    without.apply(key, value)
    assert without["seen"].get() == "12 o'clock"
    later = Subject(expiring, clock=clock).at(b"a")
    later.apply(*next(iter(without_changes(without))))
    clock.advance("59m")
    assert later["seen"].get() == "12 o'clock"
    clock.advance("1m")
    assert later["seen"].get() is None


def without_changes(subject):
    subject["seen"].set(subject["seen"].get())
    return subject.changes()


def test_entries_of_a_map_expire_one_by_one_and_a_list_as_a_whole():
    clock = ManualClock()
    subject = Subject(
        StateSpec("pages", int, "map", str, ttl=HOUR),
        StateSpec("recent", int, "list", ttl=HOUR),
        clock=clock,
    ).at(b"a")
    subject["pages"].set("home", 1)
    subject["recent"].append(1)
    clock.advance("40m")
    subject["pages"].set("cart", 2)
    subject["recent"].append(2)
    clock.advance("40m")
    assert dict(subject["pages"].items()) == {"cart": 2}
    assert subject["recent"].get() == [1, 2]
    clock.advance("40m")
    assert subject["recent"].get() == []
    subject["recent"].append(3)
    assert subject["recent"].get() == [3]


def test_annotations_say_the_kind_the_types_and_the_time_to_live():
    def handle(
        record: int,
        total: State[int],
        recent: ListState[float],
        pages: Annotated[MapState[str, list[int]], ttl("2h")],
    ) -> None: ...

    assert read_signature(handle).states == (
        StateSpec("total", int),
        StateSpec("recent", float, "list"),
        StateSpec("pages", list[int], "map", str, timedelta(hours=2)),
    )


@record(key="user")
class View:
    user: str
    page: str


def test_all_kinds_survive_crashes_in_the_driver():
    app = App("shop")
    views = app.stream("views", View)

    @app.service(reads=views)
    def visit(
        view: View,
        total: State[int],
        recent: ListState[str],
        pages: MapState[str, int],
        session: Annotated[State[int], ttl("30m")],
    ) -> None:
        total.set(total.get(0) + 1)
        recent.set([*recent, view.page][-2:])
        pages.set(view.page, pages.get(view.page, 0) + 1)
        session.set(session.get(0) + 1)
        if view.page == "bad":
            raise ValueError(view.page)

    driver = Driver(app, start_at=datetime(2026, 1, 1, tzinfo=UTC))
    for page in ("home", "cart", "bad", "home"):
        driver.pipe(views, View("ann", page))
        driver.crash()
        driver.restart()
    assert driver.state(visit, "ann", name="total") == 3
    assert driver.state(visit, "ann", name="recent") == ["cart", "home"]
    assert driver.state(visit, "ann", name="pages") == {"cart": 1, "home": 2}
    driver.advance_clock("29m")
    assert driver.state(visit, "ann", name="session") == 3
    driver.advance_clock("5m")
    assert driver.state(visit, "ann", name="session") is None
    driver.crash()
    driver.restart()
    assert driver.state(visit, "ann", name="session") is None
