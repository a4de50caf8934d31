"""Scans that a worker holds between two pages."""

from datetime import UTC, datetime

import pytest

from penstock.errors import TransientError
from penstock.services.scans import Held, Scans
from penstock.services.state.committed import Committed


def held(task: str = "count.0") -> Held:
    committed = Committed({}, clock=lambda: datetime.now(UTC))
    committed.settle({}, lambda: None)
    return Held(task, committed.cut(), iter(()))


def test_a_scan_is_taken_once_and_by_its_own_task() -> None:
    scans, scan = Scans(), held()
    number = scans.hold(scan)
    with pytest.raises(TransientError) as raised:
        scans.take(number, task="count.1")
    assert raised.value.code == "scan.gone"
    assert scans.take(number, task="count.0") is scan
    with pytest.raises(TransientError):
        scans.take(number, task="count.0")
    assert scans.hold(scan, number=number) == number


def test_the_oldest_scan_is_let_go_for_one_more() -> None:
    scans, first, second = Scans(most=1), held(), held()
    scans.hold(first)
    kept = scans.hold(second)
    assert (first.cut.closed, second.cut.closed) == (True, False)
    assert scans.take(kept, task="count.0") is second


def test_scans_that_nobody_goes_on_with_are_let_go() -> None:
    late, soon = Scans(seconds=-1), Scans()
    forgotten, kept = held(), held()
    late.hold(forgotten)
    soon.hold(kept)
    late.sweep()
    soon.sweep()
    assert (forgotten.cut.closed, kept.cut.closed) == (True, False)
    soon.close()
    assert kept.cut.closed
    assert len(late) == len(soon) == 0
