"""A process that stops with its parent, together with everything it has started."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from penstock.core.settings.settings import LogSettings
from penstock.errors import TransientError
from penstock.machine.process.lifeline import LIFELINE_VARIABLE
from penstock.machine.process.logfile import bound_log
from penstock.machine.process.processes import end_session

__all__ = ["Child"]

_GRACE = timedelta(seconds=15)
_DEATH_LIMIT = timedelta(seconds=5)
_READER_LIMIT = timedelta(seconds=5)
_POLL_SECONDS = 0.02
_LINE_BYTES = 1 << 20
_BOUNDS = LogSettings()
_LOOK_SECONDS = 1.0


class Child:
    """One child process in a session of its own, with a lifeline to this process.

    A thread calls ``on_line`` with each line of standard output, without its line end; a line
    longer than 1 MiB is dropped. Standard error is appended to the log file, which stays within
    ``bounds``: its size is checked at the start and whenever the child is polled. When the child
    ends, by itself or through ``stop``, the rest of its session is killed: nothing that it started
    survives it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[bytes], None] = lambda _: None,
        stdin: int = subprocess.DEVNULL,
        bounds: LogSettings = _BOUNDS,
    ) -> None:
        self.log = log
        self._command = list(command)
        self._environment = dict(os.environ if environment is None else environment)
        self._on_line = on_line
        self._stdin = stdin
        self._bounds = bounds
        self._looked_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._reader = threading.Thread(target=self._read, name=f"lines of {log.stem}", daemon=True)
        self._lock = threading.Lock()

    def start(self) -> Self:
        """Start the process; a Child is started once. OSError if the command does not run."""
        if self._process is not None:
            raise RuntimeError("a Child is started once")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._bound_log()
        reader, writer = os.pipe()
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=self._stdin,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment | {LIFELINE_VARIABLE: str(reader)},
                    pass_fds=(reader,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)
        self._lifeline = writer
        self._reader.start()
        return self

    @property
    def pid(self) -> int:
        """The process id, which is that of its session too."""
        return self._started().pid

    def poll(self) -> int | None:
        """Return the exit status if the process has ended (negative: by which signal)."""
        process = self._started()
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._bound_log()
        with self._lock:
            if process.returncode is None:
                if not _has_ended(process):
                    return None
                # Before its number is given back, so that nobody else can have it.
                end_session(process.pid, timeout=_DEATH_LIMIT)
                process.wait()
                os.close(self._lifeline)
        self._reader.join(_READER_LIMIT.total_seconds())
        return process.returncode

    def wait(self, *, timeout: timedelta) -> int | None:
        """Wait for the process to end by itself; return its exit status, None if it did not."""
        deadline = time.monotonic() + timeout.total_seconds()
        while (status := self.poll()) is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return status

    def stop(self, *, grace: timedelta = _GRACE) -> int:
        """Ask the process to stop, kill it after ``grace``; return its exit status.

        Returns when the process and all of its session are gone.
        """
        self.send_signal(signal.SIGTERM)
        status = self.wait(timeout=grace)
        return self.kill() if status is None else status

    def kill(self) -> int:
        """Kill the process and its whole session at once; return its exit status."""
        self.send_signal(signal.SIGKILL)
        status = self.wait(timeout=_DEATH_LIMIT)
        if status is None:
            raise TransientError(
                f"process {self.pid} does not die",
                code="process.undead",
                detail=" ".join(self._command),
                hint="it hangs in the kernel, on a disk or a network file system",
            )
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself; nothing happens if it has ended."""
        with self._lock:
            if not _has_ended(self._started()):
                os.kill(self.pid, number)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    def _bound_log(self) -> None:
        bound_log(self.log, max_bytes=self._bounds.max_bytes, kept=self._bounds.kept)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise RuntimeError("the Child was not started")
        return self._process

    def _read(self) -> None:
        stream = self._started().stdout
        if stream is None:
            raise RuntimeError("the Child has no standard output")
        with stream:
            for line in iter(lambda: stream.readline(_LINE_BYTES), b""):
                if line.endswith(b"\n"):
                    self._on_line(line[:-1])
                else:
                    _skip_line(stream)


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has ended; where possible without giving its number back."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _skip_line(stream: IO[bytes]) -> None:
    for rest in iter(lambda: stream.readline(_LINE_BYTES), b""):
        if rest.endswith(b"\n"):
            return
