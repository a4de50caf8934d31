import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.machine.locks import FileLock

MOMENT = timedelta(milliseconds=1)
HOLD = """
import sys
from datetime import timedelta
from pathlib import Path
from penstock.machine.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""

FORK = """
import os, sys
from pathlib import Path
from penstock.machine.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
from_child, to_parent = os.pipe()
from_parent, to_child = os.pipe()
child = os.fork()
if child == 0:
    os.close(to_child)
    os.write(to_parent, b"." if not lock.held else b"!")
    os.read(from_parent, 1)
    os._exit(0)
assert os.read(from_child, 1) == b"."
lock.release()
assert lock.acquire(), "the forked child still holds it"
os.close(to_child)
os.waitpid(child, 0)
"""


def test_an_exclusive_lock_keeps_all_others_out(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as first:
        assert first.acquire()
        assert not FileLock(tmp_path / "lock").acquire()
        assert not FileLock(tmp_path / "lock").acquire(shared=True)
        assert not FileLock(tmp_path / "lock").wait(timeout=MOMENT)
        assert FileLock(tmp_path / "lock").is_taken()
    assert not first.is_taken()


def test_shared_locks_keep_only_an_exclusive_one_out(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire(shared=True)
    assert second.acquire(shared=True)
    assert not FileLock(tmp_path / "lock").acquire()
    first.release()
    second.release()
    third = FileLock(tmp_path / "lock")
    assert third.acquire()
    third.release()


def test_a_lock_taken_twice_by_one_object_is_a_mistake(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as lock:
        lock.acquire()
        with pytest.raises(RuntimeError, match="already"):
            lock.acquire()


def test_the_kernel_drops_the_lock_of_a_killed_holder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        lock = FileLock(tmp_path / "lock")
        assert not lock.acquire()
        holder.kill()
        holder.wait()
        assert lock.acquire()
        lock.release()


def test_programs_started_while_it_is_held_do_not_keep_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as program:
        lock.release()
        assert lock.acquire()
        assert program.stdin
        program.stdin.close()
    lock.release()


def test_forked_processes_do_not_keep_it(tmp_path: Path) -> None:
    # In a process of its own: forking one that may have threads is not for a test run.
    subprocess.run([sys.executable, "-c", FORK, str(tmp_path / "lock")], check=True)
