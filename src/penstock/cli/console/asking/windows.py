"""The panes of windows as they came, and the late ledger by how late its records were."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.cli.console.reach import Reach
from penstock.cli.records import text_of
from penstock.core.graph.data import Data
from penstock.core.graph.parts import Part, Pipeline, Service
from penstock.core.rollup.declaration import declaration_of
from penstock.core.rollup.late import LateRecord
from penstock.core.wiring.panes import rollup_of
from penstock.serving.desk.offers import Asked, Event
from penstock.serving.http.problems import Problem

__all__ = ["BOUNDS", "WindowViews"]

_READ = 2000
"""So many of the newest records of each partition are read at first."""
_WINDOWS = 100
"""So many windows are told, those that had a pane last."""
_PANES = 30
"""So many panes of each, the newest."""
_MOST_TEXT = 2000
_ENTRIES = 20
_MOST_KINDS = 100
_FACTS = ("pane", "pane_index", "pane_last", "withdrawn", "at", "window_start", "window_end")
BOUNDS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)
"""What the ledger tells apart by how late, in seconds."""
_BOUND_WORDS = (
    "less than 1s",
    "1s to 10s",
    "10s to 1m",
    "1m to 10m",
    "10m to 1h",
    "1h to a day",
    "a day and more",
)


@dataclass(slots=True)
class _Window:
    """One window of one key, with its panes in the order in which they came."""

    key: str
    start: Any
    end: Any
    came: int = 0
    panes: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_PANES))


class WindowViews:
    """Reads what windowed parts wrote, for as long as somebody looks."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def listing(self, asked: Asked) -> list[dict[str, Any]]:
        """Return the parts with windows, and where their panes go."""
        del asked
        return [
            {
                "part": part.name,
                "kind": part.kind,
                "data": data.name,
                "topic": data.topic.name,
                "is": data.kind,
                "what": _declared(part),
            }
            for part, data in self._windowed()
        ]

    def panes(self, asked: Asked) -> Iterator[Event]:
        """Yield the windows of a stream or table of panes, again when more panes have come."""
        name, wanted = asked.path["name"], asked.query.get("key", "")
        if name not in {data.topic.name for _, data in self._windowed()}:
            text = f"no part fills {name!r} with the panes of windows"
            raise Problem(HTTPStatus.NOT_FOUND, "windows.unknown", text)
        windows: OrderedDict[tuple[str, str, str], _Window] = OrderedDict()
        kinds: Counter[str] = Counter()
        yield Event("now", _told(windows, kinds))
        for batch in self._batches(name, asked):
            for record in batch:
                _take(windows, kinds, record, wanted)
            yield Event("now", _told(windows, kinds))

    def late(self, asked: Asked) -> Iterator[Event]:
        """Yield what the late ledger says, again when more has come."""
        graph = self._reach.application
        ledger = _Ledger()
        yield Event("now", ledger.document(there=graph.has_late_records))
        if not graph.has_late_records:
            asked.stop.wait()
            return
        for batch in self._batches(graph.late_records.name, asked):
            for record in batch:
                ledger.take(record.value)
            yield Event("now", ledger.document(there=True))

    def _windowed(self) -> list[tuple[Part, Any]]:
        return [
            (part, data)
            for part in self._reach.application.parts
            if part.aggregation is not None
            for data in part.outputs
            if _on_log(data)
        ]

    def _batches(self, topic: str, asked: Asked) -> Iterator[list[Any]]:
        from penstock.backbone.client.logrecord import log_record
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import Last

        found = LogReader(self._reach.log.connection).batches(
            topic, start=Last(_READ), follow=True, stop=asked.stop, when_trimmed="skip"
        )
        for batch in found:
            yield [log_record(raw) for raw in batch]


def _declared(part: Part) -> str:
    """Return what a part computes, in a line."""
    if not isinstance(part, Pipeline | Service):
        return part.summary
    found = declaration_of(rollup_of(part))
    return ", ".join(str(found[name]) for name in ("windows", "trigger", "accumulation"))


def _on_log(data: Data) -> bool:
    return data.kind in ("stream", "table")


def _take(
    windows: OrderedDict[tuple[str, str, str], _Window],
    kinds: Counter[str],
    record: Any,
    wanted: str,
) -> None:
    """Put a pane to its window; what is no pane, such as a deleted row, is passed by."""
    key = text_of(record.key)[:_MOST_TEXT] if record.key is not None else ""
    found = _object(record.value)
    if found is None or "pane" not in found or wanted not in key:
        return
    start, end = found.get("window_start"), found.get("window_end")
    kinds["withdrawn" if found.get("withdrawn") is True else str(found["pane"])[:_ENTRIES]] += 1
    place = (key, str(start), str(end))
    window = windows.setdefault(place, _Window(key, start, end))
    windows.move_to_end(place)
    if len(windows) > _WINDOWS:
        windows.popitem(last=False)
    window.came += 1
    results = {name: value for name, value in found.items() if name not in _FACTS}
    text = msgspec.json.encode(results).decode()
    window.panes.append(
        {name: found.get(name) for name in _FACTS[:4]}
        | {
            "written_at": record.timestamp_at,
            "results": results if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…",
            "partition": record.partition,
            "offset": record.offset,
        }
    )


def _object(value: bytes | None) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(value or b"null")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _told(
    windows: OrderedDict[tuple[str, str, str], _Window], kinds: Counter[str]
) -> dict[str, Any]:
    return {
        "kinds": dict(kinds.most_common(_ENTRIES)),
        "windows": [
            {
                "key": each.key,
                "start": each.start,
                "end": each.end,
                "came": each.came,
                "panes": list(each.panes),
            }
            for each in reversed(windows.values())
        ],
    }


class _Ledger:
    """The entries of the late ledger, counted."""

    def __init__(self) -> None:
        self._late: Counter[tuple[str, str]] = Counter()
        self._bounds: Counter[int] = Counter()
        self._newest: deque[LateRecord] = deque(maxlen=_ENTRIES)
        self._unreadable = 0

    def take(self, value: bytes | None) -> None:
        """Count an entry."""
        try:
            entry = msgspec.json.decode(value or b"", type=LateRecord)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._unreadable += 1
            return
        kind = (entry.part, entry.reason)
        if kind in self._late or len(self._late) < _MOST_KINDS:
            self._late[kind] += 1
        if entry.reason != "ahead":
            self._bounds[_bound(entry.late_by_seconds)] += 1
        self._newest.append(entry)

    def document(self, *, there: bool) -> dict[str, Any]:
        """Return what was counted; ``there``: whether there is a ledger at all."""
        return {
            "there": there,
            "parts": [
                {"part": part, "reason": reason, "count": count}
                for (part, reason), count in self._late.most_common()
            ],
            "by_how_late": [
                {"late": words, "count": self._bounds[number]}
                for number, words in enumerate(_BOUND_WORDS)
            ],
            "unreadable": self._unreadable,
            "newest": [msgspec.to_builtins(each) for each in reversed(self._newest)],
        }


def _bound(seconds: float) -> int:
    return next((n for n, bound in enumerate(BOUNDS) if seconds < bound), len(BOUNDS))
