"""The copy of a share that another worker has: read by its types, taken over as it is."""

import pytest

from penstock.core.graph.state import CallScope, StateSpec
from penstock.errors import ConfigurationError
from penstock.services.state.codec import MARKER_KEY
from penstock.services.state.notes import LAYOUT_KEY, POSITIONS_KEY
from penstock.services.state.shelf import open_shelf
from penstock.services.state.states import StateCopy, States
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import TimerQueue
from penstock.testing.clock import ManualClock

TOTAL = StateSpec("total", int)
PAGES = StateSpec("pages", int, "map", str)


def timers_on(shelf):
    return TimerQueue(TaskEventTime(()), clock=ManualClock(), shelf=shelf)


def copy_of(shelf, *specs):
    timers = timers_on(shelf)
    return StateCopy(specs, changelog="changelog", clock=ManualClock(), timers=timers, shelf=shelf)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "0"


def test_everything_but_marks_is_passed_on_and_taken_over(path):
    shelf = open_shelf(path, identity="one")
    subject = copy_of(shelf, TOTAL)
    records = [
        (MARKER_KEY, b"mark"),
        (b"total\x00a", b"5"),
        (b"\x00processing\x00bell\x00a", b"[1000000,null]"),
        (b"\x00time", b'{"at":7,"inputs":{}}'),
        (POSITIONS_KEY, b'{"inputs":{}}'),
        (LAYOUT_KEY, b'{"total":"value"}'),
        (b"gone\x00a", b"5"),
    ]
    for record in records:
        subject.apply(*record)
    subject.restored({"changelog": 7})
    shelf.close()
    shelf = open_shelf(path, identity="one")
    timers = timers_on(shelf)
    heir = States([TOTAL], changelog="changelog", clock=ManualClock(), timers=timers, shelf=shelf)
    assert heir.resume() == {"changelog": 7}
    here = CallScope()
    here.key = b"a"
    assert heir.handles(here)["total"].get() == 5
    assert (len(timers), timers.event_time.micros) == (1, 7)
    assert timers.first("processing") == 1_000_000
    assert heir.notes.get(POSITIONS_KEY) == b'{"inputs":{}}'
    shelf.close()


@pytest.mark.parametrize(
    ("spec", "record"),
    [
        (TOTAL, (b"total\x00a", b'"three"')),
        (PAGES, (b"pages\x00a", b"5")),
        (PAGES, (LAYOUT_KEY, b'{"pages":"value"}')),
        (StateSpec("pages", int, "map", int), (b'pages\x00\x00\x00\x00\x01a"n"', b"5")),
    ],
)
def test_what_could_not_be_taken_over_is_refused_at_once(path, spec, record):
    shelf = open_shelf(path, identity="one")
    with pytest.raises(ConfigurationError) as raised:
        copy_of(shelf, spec).apply(*record)
    assert raised.value.code == "state.unreadable"
    shelf.close()
