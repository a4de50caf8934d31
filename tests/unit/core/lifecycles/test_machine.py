"""Life cycles: the same however records are cut into moments, restarted, or trimmed; and a recount."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock import App, EventTime, record
from penstock.core.operators.operator import Arrival
from penstock.core.panes.store import MemoryStore
from penstock.lifecycles import lifecycle

T0 = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000
START = int(T0.timestamp()) * 1_000_000


@record(key="drive", time="at")
class Smart:
    drive: str
    at: datetime
    errors: int


@record(key="drive", time="at")
class Order:
    drive: str
    at: datetime
    what: str


def plan():
    app = App("plant")
    time = EventTime(disorder="3m")
    smart = app.stream("smart", Smart, event_time=time)
    orders = app.stream("orders", Order, event_time=time)
    life = (
        lifecycle("healthy", "suspect", "draining", "off")
        .on(smart, "healthy -> suspect", where="errors >= 10")
        .on(smart, "suspect -> healthy", where="errors = 0")
        .stays(smart, "draining", "off")
        .on(orders, "suspect | healthy -> draining", where="what = 'drain'")
        .on(orders, "draining -> off", where="what = 'off'")
        .on(orders, "off -> healthy", where="what = 'repaired'")
        .after("10m", "suspect -> healthy")
        .after("30m", "draining -> suspect")
        .rests("healthy", "off")
        .entering("draining", command="concat('drain ', drive)")
    )
    return life.plan()


PLAN = plan()
RECORD = PLAN.result("changes", "stream")
ROW = PLAN.result("drives", "table")


def arrivals_of(drawn):
    found = []
    for offset, (drive, minute, what) in enumerate(drawn):
        at, time = T0 + timedelta(minutes=minute), START + minute * MINUTE
        smart = isinstance(what, int)
        value = Smart(drive, at, what) if smart else Order(drive, at, what)
        found.append(Arrival(0 if smart else 1, drive.encode(), value, time, "0", offset))
    return found


def played(arrivals, cuts=(), *, restarts=False, of=RECORD):
    store = MemoryStore()
    machine = PLAN.machine(store, of, broadcasts={})
    results, dropped = [], 0
    for start, end in pairwise([0, *sorted(cuts), len(arrivals)]):
        given_ = machine.take(arrivals[start:end], clock=START, limit=1)
        results, dropped = results + given_.results, dropped + given_.dropped
        while machine.pending:
            results += machine.more(1).results
        if restarts:
            machine.flush()
            machine.trim(0)
            store = MemoryStore(store)
            machine = PLAN.machine(store, of, broadcasts={})
    results += machine.finish().results
    machine.flush()
    return [result.record for result in results], dropped, store


def by_drive(records):
    found = {}
    for each in records:
        found.setdefault(each.drive, []).append(each)
    return found


def told(records):
    return [
        (each.before, each.state, each.cause, each.legal, (each.at - T0) // timedelta(minutes=1))
        for each in records
    ]


def test_a_drive_goes_through_its_life():
    drawn = [("a", 0, 5), ("a", 1, 12), ("a", 2, "drain"), ("a", 3, 50), ("a", 4, "off")]
    records, dropped, _ = played(arrivals_of([*drawn, ("a", 5, "repaired")]))
    assert told(records) == [
        ("healthy", "suspect", "smart", True, 1),
        ("suspect", "draining", "orders", True, 2),
        ("draining", "off", "orders", True, 4),
        ("off", "healthy", "orders", True, 5),
    ]
    assert [each.command for each in records] == [None, "drain a", None, None]
    assert dropped == 2


def test_what_is_illegal_is_told_and_changes_nothing():
    records, _, _ = played(arrivals_of([("a", 0, "off"), ("a", 1, 12)]))
    assert told(records)[0] == ("healthy", "healthy", "orders", False, 0)
    assert records[0].wanted == "off"
    assert records[1].state == "suspect"


def test_a_time_out_comes_before_what_is_later_and_when_event_time_is_past_it():
    records, _, _ = played(arrivals_of([("a", 0, "drain"), ("b", 20, 12), ("a", 31, "off")]))
    assert told(by_drive(records)["a"]) == [
        ("healthy", "draining", "orders", True, 0),
        ("draining", "suspect", "time-out", True, 30),
        ("suspect", "suspect", "orders", False, 31),
    ]
    assert told(by_drive(records)["b"])[1] == ("suspect", "healthy", "time-out", True, 30)


def test_a_table_has_the_last_state_and_nothing_that_was_illegal():
    drawn = [("a", 0, 12), ("a", 1, "off"), ("b", 1, "drain")]
    records, _, _ = played(arrivals_of(drawn), of=ROW)
    assert [(each.drive, each.state, each.since) for each in records] == [
        ("a", "suspect", T0),
        ("b", "draining", T0 + timedelta(minutes=1)),
    ]


def test_a_drive_that_is_as_it_was_in_the_beginning_takes_no_state():
    _, _, store = played(arrivals_of([("a", 0, 12), ("b", 1, 12), ("a", 2, 0)]))
    assert [key for key in store if key.startswith(b"k")] == [b"kb"]


DRAWN = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 12),
        st.sampled_from([0, 5, 12, 12, "drain", "drain", "off", "repaired", "nonsense"]),
    ),
    max_size=25,
)


def timeline(drawn):
    """Let time go on from record to record, now and then far, now and then back."""
    minute, found = 0, []
    for drive, step, what in drawn:
        minute += {12: 45, 11: -2}.get(step, step)
        found.append((drive, max(0, minute), what))
    return found


@given(DRAWN, st.lists(st.integers(0, 25), max_size=6), st.booleans())
def test_what_a_key_goes_through_does_not_depend_on_moments_or_restarts(drawn, cuts, restarts):
    arrivals = arrivals_of(timeline(drawn))
    cuts = [cut for cut in cuts if cut <= len(arrivals)]
    one, dropped, store = played(arrivals)
    other, again, kept = played(arrivals, cuts, restarts=restarts)
    assert by_drive(one) == by_drive(other)
    assert dropped == again
    lives = [key for key in store if key.startswith(b"k")]
    assert sorted(lives) == sorted(key for key in kept if key.startswith(b"k"))


LEGAL = {
    ("healthy", "drain"): "draining",
    ("suspect", "drain"): "draining",
    ("draining", "off"): "off",
    ("off", "repaired"): "healthy",
}
TARGETS = {"drain": "draining", "off": "off", "repaired": "healthy"}
TIMEOUTS = {"suspect": (10, "healthy"), "draining": (30, "suspect")}


def recount(drawn):
    """Go through the life of one drive alone, whose records come in order of time."""
    state, since, found = "healthy", 0, []

    def move(target, cause, at):
        nonlocal state, since
        found.append((state, target, cause, True, at))
        state, since = target, at

    for _, minute, what in [*drawn]:
        while state in TIMEOUTS and since + TIMEOUTS[state][0] <= minute:
            move(TIMEOUTS[state][1], "time-out", since + TIMEOUTS[state][0])
        if isinstance(what, int):
            if state == "healthy" and what >= 10:
                move("suspect", "smart", minute)
            elif state == "suspect" and what == 0:
                move("healthy", "smart", minute)
        elif target := LEGAL.get((state, what)):
            move(target, "orders", minute)
        elif what in TARGETS and TARGETS[what] != state:
            found.append((state, state, "orders", False, minute))
    return found


@given(DRAWN)
def test_a_drive_goes_through_what_a_recount_does(drawn):
    alone = sorted((("a", at, what) for _, at, what in timeline(drawn)), key=lambda each: each[1])
    records, _, _ = played(arrivals_of(alone))
    assert told(records) == recount(alone)
