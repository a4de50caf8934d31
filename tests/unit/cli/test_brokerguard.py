import queue
from datetime import timedelta

import pytest

from penstock.cli.brokerguard import Guard
from penstock.errors import ConfigurationError

SOON = timedelta(milliseconds=1)


class Flaky:
    """A broker that answers as the test has written down."""

    bootstrap = "127.0.0.1:1"

    def __init__(self, *answers):
        self._answers = list(answers)

    def alive(self):
        answer = self._answers.pop(0) if self._answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ensure(self):
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer


FULL = OSError(24, "Too many open files")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((FULL, True, False, None), ["is not supervised", "died", "is back"]),
        ((False, FULL, False, None), ["died", "did not start", "died", "is back"]),
        (
            (False, ConfigurationError("no", code="x.y"), False, None),
            ["died", "did not start", "died", "is back"],
        ),
    ],
)
def test_trouble_of_the_machine_is_survived_and_told(answers, said):
    notes = queue.Queue()
    guard = Guard(Flaky(*answers), notes.put, look=SOON, retry=SOON)
    guard.start()
    try:
        for words in said:
            assert words in notes.get(timeout=60)
    finally:
        guard.stop()
    assert guard.status() == "broker running at 127.0.0.1:1"
