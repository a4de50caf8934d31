"""Keep one program alive exactly as long as somebody owns it.

    python -I keeper.py DIRECTORY GRACE_SECONDS COMMAND...

Owners hold a shared ``flock`` on ``DIRECTORY/owners.lock``. The kernel drops it when an owner
ends, also by SIGKILL, so the keeper can take the file exclusively only when nobody owns the
program any more; then it stops the program and itself. It ends too when the program ends, and on
SIGTERM. While it runs it holds ``keeper.lock``, and ``keeper.json`` says who the two are.

The keeper leaves its caller's session and lets go of its caller at once: exit status 0 says that
the program was started. It needs the standard library only, and is run by its path, so that it
starts fast and keeps nothing else alive.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.1
LOCK_SECONDS = 5.0
OUTPUT_BYTES = 10 << 20
PR_SET_PDEATHSIG = 1

EXIT_TAKEN = 3
EXIT_NOT_STARTED = 4


def main() -> int:
    """Let go of the caller, start the program and keep it."""
    directory, grace, command = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    # What the program writes is for its owner alone.
    os.umask(0o077)
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return (os.read(reader, 1) or bytes([EXIT_NOT_STARTED]))[0]
    os.close(reader)
    lock = _lock(directory / "keeper.lock", wait_seconds=LOCK_SECONDS)
    if lock is None:
        os.write(writer, bytes([EXIT_TAKEN]))
        return EXIT_TAKEN
    state = directory / "keeper.json"
    state.unlink(missing_ok=True)
    wakeup = _wake_on_signals()
    try:
        program = subprocess.Popen(command, cwd=directory, preexec_fn=_die_with_keeper)  # noqa: PLW1509 - one thread
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)  # noqa: T201
        os.write(writer, bytes([EXIT_NOT_STARTED]))
        return EXIT_NOT_STARTED
    _write_state(state, {"keeper": os.getpid(), "program": program.pid})
    os.write(writer, bytes([0]))
    os.close(writer)
    _keep(program, directory / "owners.lock", wakeup, grace)
    state.unlink(missing_ok=True)
    return 0


def _keep(program: subprocess.Popen[bytes], owners: Path, wakeup: int, grace: float) -> None:
    """Return when the program has ended, by itself or because nobody owns it."""
    while program.poll() is None:
        select.select([wakeup], [], [], POLL_SECONDS)
        with contextlib.suppress(OSError):  # a full disk is the program's to tell
            _bound_output(owners.with_name("output.log"))
        with contextlib.suppress(BlockingIOError):
            if signal.SIGTERM in os.read(wakeup, 1024):
                _stop(program, grace)
                return
        try:
            # The lock is kept until the end of this process: who comes now waits for the stop.
            unowned = _lock(owners) is not None
        except FileNotFoundError:  # somebody has deleted the directory, and the program's data
            grace, unowned = 0.0, True
        if unowned:
            _stop(program, grace)
            return


def _bound_output(output: Path) -> None:
    """Keep the last of what the program printed, when that is more than it may be."""
    size = output.stat().st_size
    if size <= OUTPUT_BYTES:
        return
    with output.open("rb") as full:
        full.seek(size - OUTPUT_BYTES)
        output.with_name("output.log.1").write_bytes(full.read())
    os.truncate(output, 0)


def _stop(program: subprocess.Popen[bytes], grace: float) -> None:
    program.terminate()
    try:
        program.wait(grace)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def _lock(path: Path, wait_seconds: float = 0.0) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.02)
        else:
            return descriptor


def _wake_on_signals() -> int:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    # A terminal's Ctrl-C and hang-up are for the owners.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader


def _die_with_keeper() -> None:
    """In the new process: ask Linux to kill it when the keeper dies by SIGKILL."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        keeper = os.getppid()
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:  # it died before the kernel knew
            os._exit(1)


def _write_state(path: Path, state: dict[str, int]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(state), encoding="utf-8")
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main())
