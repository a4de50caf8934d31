import threading
from dataclasses import dataclass
from datetime import timedelta

from penstock.services.stuck import stuck_error

LIMIT = timedelta(seconds=15)


@dataclass
class Busy:
    service: str
    thread: int
    handling: str = ""


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
        f"slow is at test_stuck.py:{at}, in hang, with words[1] offset 3 to 9"
        for at in (line - 1, line)
    }


def test_the_failure_that_asked_for_the_stop_is_not_lost():
    error = stuck_error([Busy("slow", 0)], limit=LIMIT, failed=ValueError("no"))
    assert error.detail.splitlines() == [
        "slow is about to end",
        "  they had to stop because of this: no",
    ]
