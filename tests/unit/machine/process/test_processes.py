import os
import subprocess
import sys
from datetime import timedelta

import pytest

from penstock.machine.process.processes import (
    command_line,
    end_session,
    is_alive,
    session_members,
    wait_until_dead,
)

SLEEP = "import time; time.sleep(600)"
# A process that starts another one in a group of its own, and says its number.
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], process_group=0)
print(child.pid, flush=True)
time.sleep(600)
"""
LIMIT = timedelta(seconds=30)


@pytest.fixture
def leader():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, "a mark"], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        yield process
        end_session(process.pid, timeout=LIMIT)


def test_a_process_is_known_by_its_number_until_it_ends(leader):
    assert is_alive(leader.pid)
    assert "a mark" in command_line(leader.pid)
    leader.kill()
    assert wait_until_dead(leader.pid, timeout=LIMIT)
    # It waits for its parent's notice now, and after that its number is nobody's.
    assert leader.returncode is None
    assert not is_alive(leader.pid)
    leader.wait()
    assert not is_alive(leader.pid)
    assert command_line(leader.pid) == ""


def test_a_session_is_ended_with_all_that_was_started_in_it(leader):
    child = int(leader.stdout.readline())
    assert set(session_members(leader.pid)) == {leader.pid, child}
    assert os.getpid() not in session_members(leader.pid)
    assert end_session(leader.pid, timeout=LIMIT)
    assert session_members(leader.pid) == []
    assert not is_alive(child)
