"""`penstock dev` as a user runs it, started in one home again and again, whatever is killed."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from penstock.backbone.broker.plan import ClusterPlan
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import LogRecord
from penstock.backbone.log.reader import LogReader
from penstock.core.settings.settings import KafkaSettings
from penstock.errors import PenstockError

sys.path.insert(0, str(Path(__file__).parent))
from processes import Traces, wait_for

__all__ = ["GONE_SECONDS", "DevRun"]

GONE_SECONDS = 45


class DevRun:
    """One home directory and one application."""

    def __init__(self, home: Path, app: Path) -> None:
        self.home = home
        self.app = app
        self.mark = f"mark-{uuid.uuid4()}"
        self.traces = Traces(mark=self.mark, directory=home)
        self.output = home / "dev.out"

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "penstock.cli", "--set", f"home={self.home}"]
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [*command, "dev", str(self.app), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {"PENSTOCK_TEST_MARK": self.mark},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(GONE_SECONDS)

    def connection(self) -> Connection:
        plan = ClusterPlan.from_json((self.home / "broker" / "broker.json").read_text("utf-8"))
        return Connection(plan.bootstrap, KafkaSettings())

    def raw(self, topic: str) -> list[LogRecord]:
        """Return what a reader of committed records sees now; nothing while the broker is away."""
        try:
            return list(LogReader(self.connection()).read(topic))
        except (PenstockError, OSError):
            return []

    def records(self, topic: str) -> list[dict[str, object]]:
        return [msgspec.json.decode(found.value) for found in self.raw(topic) if found.value]

    def said(self) -> str:
        return self.output.read_text(errors="replace")[-8000:]

    def assert_gone(self) -> None:
        wait_for(f"the end of {self.traces.find()}", GONE_SECONDS, lambda: not self.traces.find())
