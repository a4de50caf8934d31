"""The state door: answers gateways, and the command line, for the state that this process has.

It is on the loopback address, or on the address that the settings say, for those who know the
project's secret. Where it is stands in the name of the process's clients, which the group tells
everybody together with the partitions that each member has: so whoever asks finds the owner.
"""

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import Any, Self

import msgspec

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.backbone.site import Site
from penstock.core.asking.questions import (
    Answer,
    Get,
    More,
    Pick,
    Positions,
    Question,
    Refused,
    Rows,
    Scan,
    decode_question,
    encode_answer,
)
from penstock.core.asking.where import client_name, is_loopback
from penstock.core.graph.parts import Service
from penstock.errors import ConfigurationError, PenstockError, TransientError
from penstock.machine.peers.host import PeerHost
from penstock.machine.peers.secret import shared_secret
from penstock.services.scans import Held, Scans
from penstock.services.state.committed import ABSENT, Committed, Cut
from penstock.services.usererrors import LOG
from penstock.services.worker.worker import Worker

__all__ = ["Freshness", "StateDoor", "rows_of"]

_SAMPLE_SECONDS = 0.5
_SAMPLES = 600
"""So many ends of the log are remembered: an answer that is older than they are says so."""
_LOOK_SECONDS = 0.005
"""How often a wait for offsets looks whether they have come."""
_SCAN_SECONDS = 5.0
"""How long one page of a scan may take."""

_JSON = msgspec.json.Encoder()


class StateDoor:
    """Answers while the block runs; :meth:`attend` says what it answers for."""

    def __init__(self, site: Site) -> None:
        settings = site.settings.serving
        if not is_loopback(settings.state_host) and not settings.secret:
            raise ConfigurationError(
                f"workers would answer for their state on {settings.state_host} without a secret",
                code="serving.secret",
                hint="set serving.secret, the same for all workers and gateways",
            )
        secret = shared_secret(settings, site.places.home)
        self._host = PeerHost(self._answer, host=settings.state_host, secret=secret)
        self._workers: Mapping[str, Worker] = {}
        self._freshness: dict[str, Freshness] = {}
        self._scans = Scans()
        self._ending = threading.Event()
        self._sampling = threading.Thread(target=self._sample, name="state-age", daemon=True)
        self.client_name = client_name(settings.state_host, self._host.port)
        """The name for the clients of this process, which says where the door is."""

    def attend(self, workers: Mapping[str, tuple[Service, Worker]]) -> None:
        """Answer for the tasks of these workers, by the names of their services."""
        self._freshness = {
            name: Freshness(service, worker) for name, (service, worker) in workers.items()
        }
        self._workers = {name: worker for name, (_, worker) in workers.items()}

    def __enter__(self) -> Self:
        self._host.__enter__()
        self._sampling.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._host.__exit__(kind, error, trace)
        self._scans.close()

    def _sample(self) -> None:
        while not self._ending.wait(_SAMPLE_SECONDS):
            self._scans.sweep()
            for freshness in list(self._freshness.values()):
                freshness.sample()

    async def _answer(self, payload: bytes) -> bytes:
        try:
            question = decode_question(payload)
        except msgspec.MsgspecError as error:
            return encode_answer(Refused(code="question.unreadable", text=str(error)))
        try:
            return encode_answer(await self._look_up(question))
        except LookupError as error:
            return encode_answer(Refused(code="state.unknown", text=str(error.args[0])))
        except PenstockError as error:
            return encode_answer(Refused(code=error.code, text=error.message))
        except Exception as error:  # noqa: BLE001 - the connection has other questions
            LOG.exception("a question to the state of %s failed", question.service)
            return encode_answer(Refused(code="state.failed", text=type(error).__name__))

    async def _look_up(self, question: Question) -> Answer:
        worker = self._workers.get(question.service)
        if worker is None:
            return Refused(code="state.moved", text="the service does not run here now")
        found = worker.work.assignment.reading().get(str(question.task))
        committed = found
        if committed is None and question.standby:
            committed = worker.work.disk.reading(question.task)
        if committed is None:
            return Refused(code="state.moved", text=_absence(worker, question.task))
        try:
            answer = await self._answered(committed, question)
        except LookupError:
            if found is None:  # the state of a table is on no changelog
                return Refused(code="state.moved", text="the copy of the task lacks this state")
            raise
        if found is None and isinstance(answer, Rows):
            return msgspec.structs.replace(answer, standby=True)
        return answer

    async def _answered(self, committed: Committed, question: Question) -> Answer:
        if question.at_least and not await _reached(committed, question):
            text = "the state is not there yet"
            return Refused(
                code="position.behind", text=text, positions=_listed(committed.positions or {})
            )
        if isinstance(question, Get | Pick):
            keys = (question.key,) if isinstance(question, Get) else question.keys
            return self._pick(committed, question, keys)
        return await asyncio.to_thread(self._paged, committed, question)

    def _paged(self, committed: Committed, question: Scan | More) -> Rows:
        if isinstance(question, More):
            return self._more(question)
        return self._hold(committed, question) if question.hold else self._scan(committed, question)

    def _pick(self, committed: Committed, question: Get | Pick, keys: Iterable[bytes]) -> Rows:
        with committed.cut() as cut:
            found = [(key, cut.get(question.state, key, ABSENT)) for key in keys]
            rows = [(key, encoded(value)) for key, value in found if value is not ABSENT]
            return self._rows(question, cut, rows, more=False)

    def _hold(self, committed: Committed, question: Scan) -> Rows:
        cut = committed.cut()
        try:
            rows = cut.scan(
                question.state, prefix=question.prefix, start=question.start, end=question.end
            )
            found = ((key, encoded(value)) for key, value in rows)
            return self._page(question, Held(_task_of(question), cut, found))
        except BaseException:
            cut.close()
            raise

    def _more(self, question: More) -> Rows:
        held = self._scans.take(question.scan, task=_task_of(question))
        try:
            return self._page(question, held)
        except BaseException:
            held.cut.close()
            raise

    def _page(self, question: Scan | More, held: Held) -> Rows:
        """Answer with the next rows of a scan, and hold it where there may be more."""
        deadline, rows, size, more = monotonic() + _SCAN_SECONDS, [], 0, False
        for key, value in _timed(held.rows, deadline) if question.rows > 0 else ():
            rows.append((key, value))
            size += len(key) + len(value)
            if len(rows) >= question.rows or size >= question.size:
                more = True
                break
        answer = self._rows(question, held.cut, rows, more=more)
        if not more:
            held.cut.close()
            return answer
        number = question.scan if isinstance(question, More) else 0
        return msgspec.structs.replace(answer, scan=self._scans.hold(held, number=number))

    def _scan(self, committed: Committed, question: Scan) -> Rows:
        with committed.cut() as cut:
            rows, more = rows_of(cut, question, deadline=monotonic() + _SCAN_SECONDS)
            return self._rows(question, cut, rows, more=more)

    def _rows(
        self, question: Question, cut: Cut, rows: list[tuple[bytes, bytes]], *, more: bool
    ) -> Rows:
        stale = self._freshness[question.service].stale_seconds(cut.positions)
        return Rows(rows=rows, positions=_listed(cut.positions), stale_seconds=stale, more=more)


class Freshness:
    """How old the state of a service's tasks may be, as far as this process can know.

    A state is as of the newest moment at which the log ended at or before its positions. Where the
    log ends is asked for twice a second.
    """

    def __init__(self, service: Service, worker: Worker) -> None:
        self._topics = [data.topic.name for data in service.reads]
        self._worker = worker
        self._samples: deque[tuple[float, dict[Partition, int]]] = deque(maxlen=_SAMPLES)

    def sample(self) -> None:
        """Ask where the log ends now."""
        at, ends = monotonic(), dict[Partition, int]()
        with suppress(PenstockError):  # the worker itself says what is wrong
            for topic in self._topics:
                found = self._worker.log.ends(topic, committed=True)
                ends |= {(topic, number): end for number, (_, end) in found.items()}
            self._samples.append((at, ends))

    def stale_seconds(self, positions: Offsets) -> float | None:
        """Return how old a state with these positions may be; None: not known."""
        log, running = self._worker.log, self._worker.work.assignment.running
        with suppress(PenstockError):
            # Of a partition that others have, the member knows where it ended once.
            if all(at in running and log.at_end(at, end) for at, end in positions.items()):
                return 0.0
        for at, ends in reversed(list(self._samples)):
            if all(ends.get(each, 0) <= offset for each, offset in positions.items()):
                return max(0.0, monotonic() - at)
        return None


def rows_of(cut: Cut, question: Scan, *, deadline: float) -> tuple[list[tuple[bytes, bytes]], bool]:
    """Return a page of keys and values in the order of the keys, and whether there are more."""
    found = _timed(
        cut.scan(question.state, prefix=question.prefix, start=question.start, end=question.end),
        deadline,
    )
    if cut.length_first(question.state):
        found = iter(heapq.nsmallest(question.rows + 1, found, key=lambda row: row[0]))
    rows: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in islice(found, question.rows):
        row = encoded(value)
        size += len(key) + len(row)
        if rows and size > question.size:
            return rows, True
        rows.append((key, row))
    return rows, next(found, None) is not None


def encoded(value: Any) -> bytes:
    """Return a value of a state as JSON; a map whose names cannot be names of JSON as pairs."""
    try:
        return _JSON.encode(value)
    except TypeError:
        return _JSON.encode(list(value.items()) if isinstance(value, dict) else str(value))


def _absence(worker: Worker, task: int) -> str:
    """Return why a task is not read here, in words."""
    for takeover in worker.work.assignment.takeovers():
        if takeover.task == str(task):
            return takeover.trouble or f"its state is being restored, {takeover.restore.progress}"
    return "the task does not run here now"


def _task_of(question: Question) -> str:
    """Return the task of a question among those of all services of this process."""
    return f"{question.service}.{question.task}"


def _timed(rows: Iterator[tuple[bytes, Any]], deadline: float) -> Iterator[tuple[bytes, Any]]:
    for row in rows:
        yield row
        if monotonic() >= deadline:
            raise TransientError(
                f"a page took longer than {_SCAN_SECONDS:g}s", code="scan.too-long"
            )


async def _reached(committed: Committed, question: Question) -> bool:
    """Wait until the committed state has the offsets that a question names; return whether."""
    deadline = monotonic() + question.wait_seconds
    while True:
        positions = committed.positions
        if positions is None or _has(positions, question.at_least):
            return True  # or it has moved: the cut says so
        if monotonic() >= deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)


def _has(positions: Offsets, at_least: Positions) -> bool:
    """Return whether positions are behind the offsets, of those partitions that they have."""
    return all(
        positions[topic, number] > offset
        for topic, offsets in at_least.items()
        for number, offset in offsets.items()
        if (topic, number) in positions
    )


def _listed(positions: Offsets) -> Positions:
    found: Positions = {}
    for (topic, number), offset in positions.items():
        found.setdefault(topic, {})[number] = offset
    return found
