"""The join cases as services on a real broker: workers, topics, transactions, changelogs.

Each case is an application of its own. Records of one topic are sent together; before one of another
topic is sent, all services have committed what they could see.
"""

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, groupby
from pathlib import Path
from typing import Any

from join_form import Case, Declared, Feed, declare

from penstock import services
from penstock.backbone.client.admin import Admin
from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.log.positions import committed_offsets
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.core.rollup.late import LATE_RECORD
from penstock.core.settings.settings import Secret, ServiceSettings, ServingSettings, Settings
from penstock.core.status.report import PartReport
from penstock.machine.places import Places
from penstock.testing.broker import temporary_broker

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PATIENCE = 120.0
SETTINGS = Settings(
    services=ServiceSettings(commit_interval=timedelta(milliseconds=20)),
    serving=ServingSettings(
        secret=Secret("of the processes of a test")
    ),  # so that no file is made for it
)


class ServiceEngines:
    """The broker that all cases share."""

    def __init__(self) -> None:
        stack = ExitStack()
        atexit.register(stack.close)
        broker = stack.enter_context(temporary_broker())
        self._connection = Connection(broker.bootstrap, broker.settings)
        self._numbers = count()

    def make(self, case: Case) -> Iterator[tuple[Declared, Any]]:
        """Yield the application of a case, with its engine."""
        declared = declare(case, on="services", name=f"case{next(self._numbers)}")
        declared.begins = 1000
        yield declared, ServiceEngine(declared, self._connection)


class ServiceEngine:
    """The application of one case."""

    steps = True

    def __init__(self, declared: Declared, connection: Connection) -> None:
        self._declared, self._connection = declared, connection
        self._graph = declared.graph
        self._services = [part for part in self._graph.parts if isinstance(part, Service)]
        self._admin = Admin(connection)
        self._fed: dict[str, int] = {}
        self._read: dict[str, int] = {}
        self._reports: dict[str, PartReport] = {}
        self._dropped = 0
        self._whole = {each.topic.name for part in self._services for each in part.broadcasts}
        declare_application(self._graph, connection)
        self._start()

    def feed(self, feeds: list[Feed]) -> None:
        """Send records, and wait until they are handled."""
        for topic, run in groupby(feeds, key=lambda each: each.data.topic.name):
            with Producer(self._connection) as producer:
                for data, key, value, ms in run:
                    if data.kind == "table" and key is None:
                        self._dropped += 1  # the broker takes no record without a key
                        continue
                    # A record of a stream says itself when it happened; 1970 is past retention.
                    at = EPOCH + timedelta(milliseconds=ms) if data.kind == "table" else None
                    producer.send(topic, key=key, value=value, timestamp_at=at)
                    self._fed[topic] = self._fed.get(topic, 0) + 1
            if topic in self._whole:
                self.restart()  # it follows soon; at its start it has read all of the table
            self._settle()

    def restart(self) -> None:
        """Stop the workers, and start others."""
        self.close()
        self._start()

    def take(self) -> list[Any]:
        """Return what came out since the last time."""
        found = []
        for data in self._declared.results:
            topic = data.topic.name
            came = list(self._records(topic))[self._read.get(topic, 0) :]
            self._read[topic] = self._read.get(topic, 0) + len(came)
            found += [(data, raw.key, raw.value, raw.headers) for raw in came]
        return found

    def late(self) -> list[tuple[str, int]]:
        """Return topics and offsets of the records in the late ledger."""
        if not self._graph.has_late_records:
            return []
        decode = JsonCodec(LATE_RECORD).decode
        found = [decode(raw.value) for raw in self._records(self._graph.late_records.name)]
        return [(each.topic, each.offset) for each in found]

    def dropped(self) -> int | None:
        """Return how many records were dropped, late ones and dead letters too."""
        if len(self._services) > 1:
            return None  # marks of event time between two of them are counted too
        self.close()
        return self._dropped + len(self.late())

    def close(self) -> None:
        """Stop the workers."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(PATIENCE)
        for report in self._reports.values():
            self._dropped += report.counts.filtered + report.counts.dead_lettered
        self._reports.clear()
        if self._error is not None:
            raise self._error

    def _start(self) -> None:
        self._stop = threading.Event()
        self._error: Any = None
        site = Site(
            settings=SETTINGS,
            places=Places(Path.cwd()),
            connection=replace(self._connection),
            stop=self._stop,
            report=lambda report: self._reports.__setitem__(report.part, report),
        )
        self._thread = threading.Thread(target=self._run, args=(site,), daemon=True)
        self._thread.start()

    def _run(self, site: Site) -> None:
        try:
            services.run(self._graph, [part.name for part in self._services], site)
        except BaseException as error:  # noqa: BLE001 - it is the case's failure
            self._error = error

    def _settle(self) -> None:
        """Wait until every service has committed all that it can see."""
        deadline = time.monotonic() + PATIENCE
        calm = 0
        while calm < (1 if len(self._services) == 1 else 2):
            calm = calm + 1 if all(map(self._is_done, self._services)) else 0
            if not self._thread.is_alive():
                raise self._error or RuntimeError("the services have ended")
            if time.monotonic() > deadline:
                raise TimeoutError("waited for services in vain")
            threading.Event().wait(0.01)

    def _is_done(self, service: Service) -> bool:
        wanted = {
            data.topic.name: end for data in service.reads if (end := self._end(data.topic.name))
        }
        group = f"{self._graph.app}.{service.name}"
        found = committed_offsets(self._admin, group, stable=True) if wanted else {}
        return found is not None and all(
            found.get((topic, 0), 0) >= end for topic, end in wanted.items()
        )

    def _end(self, topic: str) -> int:
        """Return the offset behind the last record of a topic; marks of transactions are none."""
        if topic in self._fed:
            return self._fed[topic]
        if any(topic == data.topic.name for data in self._declared.inputs.values()):
            return 0
        return max((raw.offset + 1 for raw in self._records(topic)), default=0)

    def _records(self, topic: str) -> Iterator[Any]:
        return LogReader(self._connection).read(topic)
