"""An MQTT broker of its own for a run of tests: mosquitto where it is there, else one in Python.

The one in Python forgets what it had not delivered when a client leaves, so tests of sessions need
mosquitto: on the PATH, or named by ``PENSTOCK_MOSQUITTO``.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.machine.ports import free_ports

LIMIT_SECONDS = 60


def mosquitto() -> str | None:
    """Return the program, None where this machine has none."""
    return os.environ.get("PENSTOCK_MOSQUITTO") or shutil.which("mosquitto")


class Mosquitto:
    """One broker, which may end and start again; it keeps sessions on the disk."""

    def __init__(self, home: Path, program: str) -> None:
        self.port = free_ports(1)[0]
        self.address = f"mqtt://127.0.0.1:{self.port}"
        self._home, self._program = home, program
        self._process: subprocess.Popen[bytes] | None = None
        (home / "conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 100000\n"
            f"persistence true\npersistence_location {home}/\nset_tcp_nodelay true\n"
            + ("user root\n" if os.getuid() == 0 else "")
        )
        self.start()

    def start(self) -> None:
        line = [self._program, "-c", str(self._home / "conf")]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(line, stdout=log, stderr=log, cwd=self._home)
        reachable(self.port)

    def stop(self) -> None:
        """End it; sessions are written down then."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(LIMIT_SECONDS)


class InPython:
    """One broker in a process of its own, which takes with it what it leaves open."""

    def __init__(self) -> None:
        self.port = free_ports(1)[0]
        self.address = f"mqtt://127.0.0.1:{self.port}"
        line = [sys.executable, __file__, str(self.port)]
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        reachable(self.port)

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=LIMIT_SECONDS)


def serve(port: int) -> None:
    """Be a broker until standard input ends, as it does with the process that started this one."""
    from amqtt.broker import Broker

    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }

    async def until_the_end() -> None:
        await Broker(config).start()
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(until_the_end())


def reachable(port: int) -> None:
    pause = threading.Event()
    for _ in range(LIMIT_SECONDS * 50):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS).close()
        except OSError:
            pause.wait(0.02)
        else:
            return
    raise AssertionError("the broker does not start")


@contextmanager
def running_broker() -> Iterator[Mosquitto | InPython]:
    with tempfile.TemporaryDirectory(prefix="penstock-mqtt-") as directory:
        program = mosquitto()
        broker = InPython() if program is None else Mosquitto(Path(directory), program)
        try:
            yield broker
        finally:
            broker.stop()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
