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
from pathlib import Path

import psutil

__all__ = ["Todo"]

LIMIT = 90.0
APP = Path(__file__).parents[2] / "apps" / "todo"


class Todo:
    """One run of the application; its gateway has the same address when it comes back."""

    def __init__(self, directory: Path, *, bootstrap: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "dev", str(APP)],
            cwd=directory,
            env=os.environ
            | {
                "PENSTOCK_KAFKA_BOOTSTRAP": bootstrap,
                "PENSTOCK_HOME": str(directory / "home"),
                "PENSTOCK_SERVING_PORT": str(self._port),
                "PENSTOCK_DEV_RESTART_BACKOFF": "200ms",
                "PENSTOCK_SERVICES_SESSION_TIMEOUT": "6s",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            self.said.extend(line.rstrip("\n") for line in lines)

    def kill_gateway(self) -> None:
        """Kill the process of the gateway; it is started again."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        (pid,) = (each.pid for each in children if each.cmdline()[-2:] == ["--part", "door"])
        os.kill(pid, signal.SIGKILL)

    def until_healthy(self) -> None:
        """Wait until the gateway answers."""
        deadline = time.monotonic() + LIMIT
        while not self._is_healthy():
            assert time.monotonic() < deadline, self.said
            assert self._process.poll() is None, self.said
            threading.Event().wait(0.1)

    def _is_healthy(self) -> bool:
        try:
            self.ask("/v1/health")
        except OSError:
            return False
        return True

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
        self._process.send_signal(signal.SIGINT)
        self._process.wait(LIMIT)
