"""Everything that runs in a project, asked from each command that runs it."""

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.core.status.exposition import nested
from penstock.core.status.status import PartStatus, RunStatus, decode_status
from penstock.machine.ports import LOOPBACK
from penstock.machine.process.registry import Registry, RunEntry

__all__ = ["Overview", "Unanswered", "look"]

_ASK_SECONDS = 3.0
"""How long a run may take to answer; it answers from memory."""
_ASKED_AT_ONCE = 16
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A running command that does not answer."""

    entry: RunEntry
    why: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All runs at one moment."""

    runs: tuple[RunStatus, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing runs."""
        return not self.runs and not self.unanswered

    @property
    def healthy(self) -> bool:
        """Whether something runs, and everything that does is well."""
        return bool(self.runs) and not self.unanswered and all(run.healthy for run in self.runs)

    def of(self, app: str) -> "Overview":
        """Return what runs of one application."""
        return Overview(
            tuple(run for run in self.runs if run.app == app),
            tuple(each for each in self.unanswered if each.entry.app == app),
        )

    def troubles(self) -> Iterator[str]:
        """Yield a line for each part or run that is not well."""
        for run in self.runs:
            for part in run.parts:
                if not part.healthy:
                    why = f": {part.why}" if part.why else ""
                    yield f"{run.app} {part.part} ({part.process}) is {part.state}{why}"
        for each in self.unanswered:
            entry = each.entry
            yield f"{entry.app} ({entry.command}, process {entry.pid}) does not answer: {each.why}"

    def document(self) -> dict[str, Any]:
        """Return everything for JSON; metrics are nested by the values of their labels."""
        return {
            "healthy": self.healthy,
            "runs": [
                {
                    "app": run.app,
                    "command": run.command,
                    "pid": run.pid,
                    "started_at": run.started_at,
                    "healthy": run.healthy,
                    "parts": [_part_document(part) for part in run.parts],
                }
                for run in self.runs
            ],
            "unanswered": [
                msgspec.structs.asdict(each.entry) | {"why": each.why} for each in self.unanswered
            ],
        }


def _part_document(part: PartStatus) -> dict[str, Any]:
    found = msgspec.structs.asdict(part)
    return found | {"healthy": part.healthy, "metrics": nested(part.metrics)}


def look(registry: Registry) -> Overview:
    """Ask every command that runs; each has a few seconds, all at once."""
    entries = registry.entries()
    if not entries:
        return Overview()
    with ThreadPoolExecutor(min(len(entries), _ASKED_AT_ONCE)) as executor:
        answers = list(executor.map(_ask, entries))
    runs = [each for each in answers if isinstance(each, RunStatus)]
    unanswered = [each for each in answers if isinstance(each, Unanswered)]
    if unanswered:
        # One that has ended meanwhile is no trouble.
        still = registry.entries()
        unanswered = [each for each in unanswered if each.entry in still]
    return Overview(tuple(runs), tuple(unanswered))


def _ask(entry: RunEntry) -> RunStatus | Unanswered:
    connection = http.client.HTTPConnection(LOOPBACK, entry.port, timeout=_ASK_SECONDS)
    try:
        connection.request("GET", "/status")
        return decode_status(connection.getresponse().read(_MOST_BYTES))
    except TimeoutError:
        return Unanswered(entry, f"no answer within {_ASK_SECONDS:g}s")
    except (OSError, http.client.HTTPException) as error:
        return Unanswered(entry, str(error) or type(error).__name__)
    except msgspec.MsgspecError:
        return Unanswered(entry, "its answer is not a status of this version of Penstock")
    finally:
        connection.close()
