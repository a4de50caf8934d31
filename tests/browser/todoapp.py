"""The todo application, run by `penstock dev`, and its table over HTTP."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import psutil
from tests.broker.breaking_proxy import BreakingProxy

__all__ = ["Todo"]

LIMIT = 90.0
APP = Path(__file__).parents[2] / "apps" / "todo"


class Todo:
    """One run of the application behind one address, whichever gateway answers there."""

    def __init__(self, directory: Path, *, bootstrap: str) -> None:
        self._directory, self._bootstrap = directory, bootstrap
        self.said: list[str] = []
        first = _free_port()
        self._front = BreakingProxy(first).__enter__()
        self.address = f"http://127.0.0.1:{self._front.port}"
        self._process = self._start(first, "dev", str(APP))
        self._second: subprocess.Popen[str] | None = None

    def _start(self, port: int, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", *words],
            cwd=self._directory,
            env=os.environ
            | {
                "PENSTOCK_KAFKA_BOOTSTRAP": self._bootstrap,
                "PENSTOCK_HOME": str(self._directory / "home"),
                "PENSTOCK_SERVING_PORT": str(port),
                "PENSTOCK_DEV_RESTART_BACKOFF": "200ms",
                "PENSTOCK_SERVICES_SESSION_TIMEOUT": "6s",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            self.said.extend(line.rstrip("\n") for line in lines)

    def start_second_gateway(self) -> None:
        """Start another process of the gateway, which nobody uses yet."""
        self._port = _free_port()
        self._second = self._start(self._port, "run", str(APP), "--part", "door")
        self._until(lambda: _is_healthy(f"http://127.0.0.1:{self._port}"))

    def take_over(self) -> None:
        """Let the second gateway have the address, and all connections to the first end."""
        self._front.lead_to(self._port)
        self._front.cut()

    def kill_gateway(self) -> None:
        """Kill the process of the gateway; it is started again."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        (pid,) = (each.pid for each in children if each.cmdline()[-2:] == ["--part", "door"])
        os.kill(pid, signal.SIGKILL)

    def until_healthy(self) -> None:
        """Wait until the gateway answers."""
        self._until(lambda: _is_healthy(self.address))

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < deadline, self.said
            assert self._process.poll() is None, self.said
            threading.Event().wait(0.1)

    def ask(self, path: str, body: object = None) -> dict:
        """Return what the gateway answers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data, headers)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
            found: dict = json.loads(answer.read())
        return found

    def rows(self, list_id: str) -> list[dict]:
        """Return the items of a list in their order, as the table itself has them."""
        found, after = [], ""
        while True:
            page = self.ask(f"/v1/tables/todo.items/rows?limit=500{after}")
            found += [each["value"] for each in page["rows"]]
            if not page.get("next"):
                break
            after = f"&after={page['next']}"
        items = [each for each in found if each["list"] == list_id]
        return sorted(items, key=lambda each: (each["rank"], each["id"]))

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        ending = [each for each in (self._second, self._process) if each is not None]
        for each in ending:
            each.send_signal(signal.SIGINT)
        for each in ending:
            each.wait(LIMIT)
        with suppress(OSError):
            self._front.__exit__()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
    return found


def _is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/v1/health", timeout=30):  # noqa: S310 - ours
            return True
    except (OSError, HTTPException):
        return False
