"""Runs elsewhere are asked at their addresses; what does not answer says why."""

import argparse
import socket
from datetime import UTC, datetime

import pytest

from penstock.cli.status.page import StatusPage
from penstock.cli.status.remote import ask_runs, read_run_address
from penstock.core.status.status import RunStatus
from penstock.machine.ports import free_ports


def test_every_address_is_asked_and_each_that_fails_says_why():
    run = RunStatus(
        app="plant", command="run", pid=7, started_at=datetime(2026, 1, 1, tzinfo=UTC), parts=()
    )
    closed = f"http://127.0.0.1:{free_ports(1)[0]}"
    with StatusPage(lambda: run, port=0) as page, socket.create_server(("127.0.0.1", 0)) as deaf:
        other = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        strange = f"{page.address}/status"  # which has no /status below it
        found = ask_runs([page.address, closed, other, strange])
    assert found[page.address] == run
    assert "refused" in found[closed].lower()
    assert "timed out" in found[other]
    assert found[strange] == "it answers 404 Not Found"
    assert ask_runs([]) == {}


@pytest.mark.parametrize(
    "text", ["worker", "file:///etc/passwd", "http://", "http://x:99999", "ftp://x"]
)
def test_what_is_no_address_of_a_run_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="no address"):
        read_run_address(text)


def test_an_address_is_taken_without_its_last_slash():
    assert read_run_address("https://worker-2.example:9100/") == "https://worker-2.example:9100"
