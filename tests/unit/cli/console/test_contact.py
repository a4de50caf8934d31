"""What to do about a log that does not answer depends on whose broker it is, and whether it lives."""

import time
from pathlib import Path

import pytest

from penstock.cli.console.contact import LogContact
from penstock.cli.console.log import LogWatcher


@pytest.mark.parametrize(
    ("directory", "is_down", "advice"),
    [
        (Path("broker"), True, "wait: its broker is started again"),
        (Path("broker"), False, "see what keeps the machine busy"),
        (None, False, "see its brokers, and the network"),
    ],
)
def test_what_to_do_about_a_log_that_is_away(directory, is_down, advice):
    contact = LogContact(LogWatcher(lambda: None, directory=directory), print)
    assert contact.away() is None  # it has never been there
    contact._answered_at = time.monotonic() - 1
    assert contact.away() is None  # it may be slow
    contact._answered_at = time.monotonic() - 75
    away = contact.away(is_down=is_down)
    assert 75 <= away.seconds < 80
    assert away.do.startswith(advice)
    assert "all parts go on where they were" in away.do
