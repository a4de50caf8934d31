"""Calls that share an allowance of time."""

import threading
from datetime import timedelta

import pytest

from penstock.pipelines.query.allowance import OverdueError, allowance

AMPLE, NONE = timedelta(minutes=5), timedelta()


def unwanted() -> None:
    raise AssertionError("nothing was to be cancelled")


def test_calls_return_and_raise_as_they_would_and_share_a_thread():
    with allowance(AMPLE, patience=60, cancel=unwanted) as found:
        first, second = found.call(threading.get_ident), found.call(threading.get_ident)
        with pytest.raises(ZeroDivisionError):
            found.call(lambda: 1 / 0)
        with pytest.raises(TimeoutError, match="own"):
            found.call(lambda: (_ for _ in ()).throw(TimeoutError("its own")))
        assert found.call(lambda: 7) == 7
    assert first == second != threading.get_ident()


def test_a_call_that_never_ends_is_left_when_the_time_is_used_up_and_cancelled():
    ended = threading.Event()
    with (
        pytest.raises(OverdueError),
        allowance(NONE, patience=60, cancel=ended.set) as found,
    ):
        found.call(lambda: ended.wait(60))
    assert ended.is_set()


def test_what_cannot_be_cancelled_does_not_keep_the_caller():
    ended = threading.Event()
    with (
        pytest.raises(OverdueError),
        allowance(NONE, patience=0, cancel=lambda: None) as found,
    ):
        found.call(lambda: ended.wait(60))
    assert not ended.is_set()
    ended.set()


def test_no_call_is_taken_after_the_end():
    with allowance(AMPLE, patience=60, cancel=unwanted) as found:
        pass
    with pytest.raises(RuntimeError):
        found.call(lambda: 1)
