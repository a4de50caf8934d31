import threading
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from penstock.services.worker.stalls import slow_call, stuck_error

LIMIT = timedelta(seconds=15)


@dataclass
class Busy:
    service: str
    thread: int
    handling: str = ""
    busy_since: float | None = None


def hang(begun, release):
    begun.set()
    release.wait(60)


def test_what_does_not_stop_is_told_with_the_line_of_the_users_code_and_its_records():
    begun, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=hang, args=(begun, release))
    thread.start()
    try:
        assert begun.wait(60)
        error = stuck_error([Busy("slow", thread.ident, "words[1] offset 3 to 9")], limit=LIMIT)
    finally:
        release.set()
        thread.join()
    assert error.message == "slow did not stop within 15s"
    line = hang.__code__.co_firstlineno + 2
    assert error.detail in {  # the event may be about to be set: between two lines
        f"slow is at test_stalls.py:{at}, in hang, with words[1] offset 3 to 9"
        for at in (line - 1, line)
    }


def test_the_failure_that_asked_for_the_stop_is_not_lost():
    error = stuck_error([Busy("slow", 0)], limit=LIMIT, failed=ValueError("no"))
    assert error.detail.splitlines() == [
        "slow is about to end",
        "  they had to stop because of this: no",
    ]


def test_a_call_that_takes_too_long_is_told_with_its_line_and_its_record():
    begun, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=hang, args=(begun, release))
    thread.start()
    try:
        assert begun.wait(60)
        since = monotonic() - 20
        text = slow_call(Busy("slow", thread.ident, "words[1] offset 3", since), limit=LIMIT)
    finally:
        release.set()
        thread.join()
    assert text.startswith("slow is at test_stalls.py:")
    assert ", in hang, with words[1] offset 3, since 20" in text


def test_who_is_idle_or_busy_for_a_moment_is_not_slow():
    assert slow_call(Busy("slow", 0), limit=LIMIT) == ""
    assert slow_call(Busy("slow", 0, "words[1] offset 3", monotonic()), limit=LIMIT) == ""
