"""Child processes, for real: small Python programs."""

import os
import queue
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.machine.process.child import Child
from penstock.machine.process.processes import is_alive, session_members, wait_until_dead

LIMIT = timedelta(seconds=10)
MOMENT = timedelta(milliseconds=50)

POLITE = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""

# Starts a process in a process group of its own, as Spark's Python workers are.
WITH_GRANDCHILD = """
import os, subprocess, signal, sys
started = subprocess.Popen(
    [sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"],
    preexec_fn=lambda: os.setpgid(0, 0),
)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print(started.pid, flush=True)
signal.pause()
"""

WATCHING = """
import signal, sys, threading
from datetime import timedelta
from penstock.machine.process.lifeline import watch_lifeline
stop = threading.Event()
assert watch_lifeline(stop.set, grace=timedelta(seconds=float(sys.argv[1])))
print("ready", flush=True)
if sys.argv[2] == "obey":
    stop.wait()
else:
    signal.pause()
"""

PARENT = """
import queue, sys
from pathlib import Path
from penstock.machine.process.child import Child
lines = queue.SimpleQueue()
child = Child(sys.argv[2:], log=Path(sys.argv[1]), on_line=lines.put).start()
assert lines.get() == b"ready"
print(child.pid, flush=True)
sys.stdin.read()
"""


class Lines:
    """What a child has said, in order."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def __call__(self, line: bytes) -> None:
        self.queue.put(line)

    def next(self) -> bytes:
        return self.queue.get(timeout=LIMIT.total_seconds())


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "part.log"


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_a_child_is_asked_to_stop_and_its_status_is_returned(log: Path, lines: Lines) -> None:
    child = Child(python(POLITE), log=log, on_line=lines).start()
    assert lines.next() == b"ready"
    assert child.poll() is None
    assert child.stop(grace=LIMIT) == 7
    assert child.poll() == 7
    assert child.stop() == 7


def test_a_child_that_does_not_stop_is_killed_after_the_grace(log: Path, lines: Lines) -> None:
    child = Child(python(STUBBORN), log=log, on_line=lines).start()
    lines.next()
    assert child.stop(grace=MOMENT) == -signal.SIGKILL
    assert not is_alive(child.pid)


def test_what_a_child_started_does_not_survive_its_stop(log: Path, lines: Lines) -> None:
    child = Child(python(WITH_GRANDCHILD), log=log, on_line=lines).start()
    grandchild = int(lines.next())
    assert child.stop(grace=LIMIT) == 0
    assert not is_alive(grandchild)


def test_what_a_child_started_does_not_survive_its_crash(log: Path, lines: Lines) -> None:
    child = Child(python(WITH_GRANDCHILD), log=log, on_line=lines).start()
    grandchild = int(lines.next())
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(timeout=LIMIT) == -signal.SIGKILL
    assert not is_alive(grandchild)
    assert session_members(child.pid) == []


def test_a_child_has_a_session_of_its_own(log: Path, lines: Lines) -> None:
    with Child(python(POLITE), log=log, on_line=lines) as child:
        lines.next()
        assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid


def test_lines_arrive_in_order_and_a_huge_one_is_dropped(log: Path, lines: Lines) -> None:
    code = "print('one'); print('x' * 3_000_000); print('two'); print('no end', end='')"
    child = Child(python(code), log=log, on_line=lines).start()
    assert child.wait(timeout=LIMIT) == 0
    assert [lines.next(), lines.next()] == [b"one", b"two"]
    assert lines.queue.empty()


def test_standard_error_is_appended_to_the_log(log: Path) -> None:
    for word in ("first", "second"):
        child = Child(python(f"import sys; sys.stderr.write('{word}\\n')"), log=log).start()
        assert child.wait(timeout=LIMIT) == 0
    assert log.read_text() == "first\nsecond\n"


def test_a_log_that_has_grown_large_is_rotated_at_the_start(log: Path) -> None:
    log.parent.mkdir()
    for number in range(4):
        log.write_bytes(b"%d" % number * (10 << 20))
        assert Child(python(""), log=log).start().wait(timeout=LIMIT) == 0
    kept = {path.name: path.read_bytes()[:1] for path in log.parent.iterdir()}
    assert kept == {"part.log": b"", "part.log.1": b"3", "part.log.2": b"2"}


def test_a_child_reads_what_it_is_given(log: Path, lines: Lines) -> None:
    reader, writer = os.pipe()
    child = Child(python("print(input())"), log=log, on_line=lines, stdin=reader).start()
    os.close(reader)
    os.write(writer, b"typed\n")
    os.close(writer)
    assert lines.next() == b"typed"
    assert child.wait(timeout=LIMIT) == 0


def test_a_command_that_does_not_run_leaves_nothing_open(log: Path, tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(FileNotFoundError):
        Child([str(tmp_path / "nothing")], log=log).start()
    assert open_files() == before


def test_a_finished_child_leaves_nothing_open(log: Path) -> None:
    before = open_files()
    assert Child(python("print(1)"), log=log).start().wait(timeout=LIMIT) == 0
    assert open_files() == before


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def start_parent(log: Path, command: list[str]) -> tuple["subprocess.Popen[str]", int]:
    parent = subprocess.Popen(
        python(PARENT, str(log), *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    return parent, int(parent.stdout.readline())


@pytest.mark.parametrize(
    ("grace", "manners"), [("60", "obey"), ("0.05", "ignore")], ids=["asked", "killed"]
)
def test_a_child_stops_when_its_parent_is_killed(log: Path, grace: str, manners: str) -> None:
    parent, pid = start_parent(log, python(WATCHING, grace, manners))
    assert is_alive(pid)
    parent.kill()
    parent.communicate()
    assert wait_until_dead(pid, timeout=LIMIT)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked to wake it")
def test_a_child_that_is_suspended_stops_too_when_its_parent_is_killed(log: Path) -> None:
    parent, pid = start_parent(log, python(WATCHING, "60", "obey"))
    os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    assert wait_until_dead(pid, timeout=LIMIT)


def test_without_a_parent_to_watch_nothing_is_watched() -> None:
    code = (
        "from penstock.machine.process.lifeline import watch_lifeline; print(watch_lifeline(print))"
    )
    answer = subprocess.run(python(code), capture_output=True, text=True, check=True)
    assert answer.stdout == "None\n"
