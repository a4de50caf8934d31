"""A running Chromium, driven over the DevTools protocol through two pipes.

It ends when the pipes do, so none outlives the tests. No event loop is involved: tests that use
one are not disturbed.
"""

import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.chromium import Program

__all__ = ["Browser", "BrowserError"]

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # it opens only pages of the tests, and containers often allow no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
ANSWER_SECONDS = 120.0
"""How long one command may take: the machine may be busy."""
END_SECONDS = 10.0

_PIPES = "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
_FIRST_DESCRIPTOR = 10
_READ_BYTES = 1 << 16
_END = b"\0"

Event = Callable[[str, dict[str, Any]], None]


class BrowserError(Exception):
    """The browser ended, did not answer, or refused a command."""


class Browser:
    """One process of Chromium. Its pages are made by ``tests.browser.page.Page``."""

    def __init__(self, program: Program) -> None:
        self._profile = tempfile.mkdtemp(prefix="penstock-chromium-")
        self._log = Path(self._profile) / "log"
        to_read, self._writes = (_lifted(each) for each in os.pipe())
        self._reads, to_write = (_lifted(each) for each in os.pipe())
        command = [sys.executable, "-I", "-S", "-c", _PIPES, str(to_read), str(to_write)]
        command += [str(program.path), *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(to_read, to_write),
                start_new_session=True,
            )
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._held = bytearray()
        self._listening: dict[str, Event] = {}

    def command(self, method: str, *, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Give a command and return its result; events that come meanwhile are passed on."""
        number = next(self._numbers)
        document = {"id": number, "method": method, "params": parameters}
        if session:
            document["sessionId"] = session
        self._write(json.dumps(document).encode() + _END)
        deadline = time.monotonic() + ANSWER_SECONDS
        while number not in self._answers:
            if not self._read(deadline - time.monotonic()):
                raise BrowserError(
                    f"{method}: no answer within {ANSWER_SECONDS:g}s; {self._said()}"
                )
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    def listen(self, session: str, event: Event) -> None:
        """Pass the events of a session on."""
        self._listening[session] = event

    def leave(self, session: str) -> None:
        """Pass them on no more."""
        self._listening.pop(session, None)

    def close(self) -> None:
        """End the browser, and delete what it wrote."""
        os.close(self._writes)
        os.close(self._reads)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._writes, data) :]
        except OSError as error:
            raise BrowserError(f"the browser has ended; {self._said()}") from error

    def _read(self, seconds: float) -> bool:
        """Take what has come in; return whether something did in so many seconds."""
        if not select.select([self._reads], [], [], max(0.0, seconds))[0]:
            return False
        data = os.read(self._reads, _READ_BYTES)
        if not data:
            raise BrowserError(f"the browser has ended; {self._said()}")
        self._held += data
        *whole, rest = self._held.split(_END)
        self._held = bytearray(rest)
        for text in whole:
            self._take(json.loads(text))
        return True

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        elif event := self._listening.get(message.get("sessionId", "")):
            event(message["method"], message["params"])

    def _said(self) -> str:
        try:
            return self._log.read_text(errors="replace")[-2000:]
        except OSError:
            return ""


def _lifted(descriptor: int) -> int:
    """Return the same pipe with a number that the child's own pipes do not have."""
    found = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(descriptor)
    return found
