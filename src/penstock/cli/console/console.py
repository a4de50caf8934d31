"""The console of a run: its page, and all that the page shows, as questions and streams."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from penstock import __version__
from penstock.cli.console.answers import Document, answering, telling, watching
from penstock.cli.console.asking.connectors import Positions
from penstock.cli.console.asking.livequeries import Tries
from penstock.cli.console.asking.models import ModelNews, ModelViews, model_tables
from penstock.cli.console.asking.queries import Answers
from penstock.cli.console.asking.states import States
from penstock.cli.console.asking.windows import WindowViews
from penstock.cli.console.contact import LogContact
from penstock.cli.console.doing.giving import GivingBack
from penstock.cli.console.doing.producing import Producing
from penstock.cli.console.letters import Letters
from penstock.cli.console.logs import Logs
from penstock.cli.console.look import Look
from penstock.cli.console.picture import picture
from penstock.cli.console.reach import Reach
from penstock.cli.console.recorder import Recorder
from penstock.cli.console.settings import settings_document
from penstock.cli.console.tail import Tail
from penstock.cli.console.topics import (
    group_document,
    groups_document,
    topic_document,
    topics_document,
)
from penstock.cli.console.way import Ways
from penstock.console import PAGE
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.settings.configuration import Resolved
from penstock.serving.desk.offers import Asked, Event, Offers

__all__ = ["ConsolePage"]

_LOOK_SECONDS = 0.8


class ConsolePage(AbstractContextManager["ConsolePage"]):
    """Records what runs while the block runs, and offers it.

    ``reach`` leads to the log, the application and its workers. ``logs`` gives the files that the
    processes write, by their names, ``settings`` those of the run. Who has the
    ``key`` may write; without one nobody may.
    """

    def __init__(
        self,
        look: Callable[[], Look],
        *,
        app: str,
        command: str,
        reach: Reach,
        logs: Callable[[], Mapping[str, Path]] = dict,
        settings: Callable[[], Mapping[str, Resolved]] = dict,
        key: str = "",
    ) -> None:
        graph, log = reach.graph, reach.log
        self._contact = LogContact(log, self.tell)
        self._recorder = Recorder(lambda: self._looked(look()))
        self._graph = graph
        self._log = log
        self._tail = Tail(log, graph)
        self._states = States(reach, self._recorder.total)
        self._answers = Answers(reach)
        self._windows = WindowViews(reach)
        self._tries = Tries(reach, self._recorder.total)
        self._models = ModelViews(reach)
        self._positions = Positions(reach)
        self._model_news = ModelNews(reach, self.tell)
        self._giving = GivingBack(reach, self.tell)
        self._producing = Producing(reach, self.tell)
        self._key = key
        self._ways = Ways(log, graph)
        self._letters = Letters(log, graph)
        self._logs = Logs(logs)
        self._settings = settings
        self._boot = uuid4().hex[:8]
        self._about = {
            "app": app,
            "command": command,
            "version": __version__,
            "boot": self._boot,
            "logs": bool(logs()),
            "writes": bool(key),
        }
        self._picture = cache(lambda: self._drawn(graph()))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._contact)
        self._stack.enter_context(self._recorder)
        self._stack.enter_context(self._model_news)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def tell(self, text: str) -> None:
        """Take note of something that happened."""
        self._recorder.tell(text)

    @property
    def offers(self) -> Offers:
        """Return the page and what it asks for."""
        recorder = self._recorder
        documents: dict[str, Document] = {
            "about": lambda _: self._told_about(),
            "now": lambda _: recorder.now(),
            "history": lambda _: recorder.history(),
            "happened": lambda _: recorder.happened(),
            "graph": lambda _: self._picture(),
            "dead-letters": self._letters.document,
            "states": self._states.listing,
            "states/{name}": self._states.values,
            "ways/{name}/{partition}/{offset}": self._ways.document,
            "give-back": self._giving.plan,
            "sql": self._answers.document,
            "relations": self._answers.relations,
            "windows": self._windows.listing,
            "live-queries": self._tries.listing,
            "models": self._models.document,
            "settings": lambda _: settings_document(self._settings()),
        }
        watched = self._log_documents() | {
            "connectors": self._positions.document,
            "parts/{key}": lambda asked: recorder.metrics(asked.path["key"]),
        }
        return Offers(
            questions={
                f"/v1/console/{name}": answering(tell)
                for name, tell in (documents | watched).items()
            },
            streams={
                "/v1/console/live": self._live,
                "/v1/console/live/tail/{name}": self._tail.stream,
                "/v1/console/live/logs/{name}": self._logs.stream,
                "/v1/console/live/windows/{name}": telling(self._windows.panes),
                "/v1/console/live/late": telling(self._windows.late),
                "/v1/console/live/queries/{name}": telling(self._tries.stream),
                "/v1/console/live/sql": telling(self._answers.stream),
                "/v1/console/live/dead-letters": telling(self._letters.stream),
            }
            | {
                f"/v1/console/live/{name}": watching(tell, self._log.pause)
                for name, tell in watched.items()
            },
            actions={
                "/v1/console/give-back": answering(self._giving.act),
                "/v1/console/records/{name}": answering(self._producing.act),
            },
            key=self._key,
            files=PAGE,
        )

    def _looked(self, found: Look) -> Look:
        """Return a look with what is known of the log; what the broker's keeper says is of less."""
        away = self._contact.away(is_down="down" in found.broker)
        return replace(found, away=away, broker="" if away else found.broker)

    def _told_about(self) -> dict[str, Any]:
        return self._about | {"has": has_views(self._graph())}

    def _log_documents(self) -> dict[str, Document]:
        log, graph = self._log, self._graph
        return {
            "topics": lambda _: topics_document(log, graph),
            "topics/{name}": lambda asked: topic_document(log, graph, asked.path["name"]),
            "groups": lambda _: groups_document(log),
            "groups/{name:path}": lambda asked: group_document(log, asked.path["name"]),
        }

    def _drawn(self, graph: Graph | None) -> dict[str, Any]:
        if graph is None:
            return {"app": "", "width": 0, "height": 0, "nodes": [], "edges": []}
        return picture(graph)

    def _live(self, asked: Asked) -> Iterator[Event]:
        """Yield what is, once a second, what happened, and the samples of the history."""
        boot, _, text = asked.after.partition("-")
        goes_on = boot == self._boot and text.isdecimal() and len(text) < len(str(1 << 60))
        told, number = int(text) if goes_on else 0, 0
        history = self._recorder.history()
        yield Event("about", self._told_about())
        yield Event("history", history)
        sampled_at = _newest(history)
        while not asked.stop.is_set():
            last, document = self._recorder.next(number, seconds=_LOOK_SECONDS)
            if last == number:
                continue
            number = last
            if happened := self._recorder.happened(told):
                told = happened[-1].number
                yield Event("happened", happened, f"{self._boot}-{told}")
            samples = self._recorder.history(after=sampled_at)
            if samples["at"]:
                sampled_at = _newest(samples)
                yield Event("samples", samples)
            yield Event("now", document)


def has_views(graph: Graph | None) -> dict[str, bool]:
    """Return which views an application has something for; the others are left out of the menu."""
    parts = graph.parts if graph else ()
    return {
        "windows": any(part.aggregation is not None for part in parts),
        "live": any(part.live for part in parts if isinstance(part, Gateway)),
        "models": bool(graph and model_tables(graph)),
        "connectors": any(part.kind in ("source", "sink", "gateway") for part in parts),
    }


def _newest(history: dict[str, Any]) -> float:
    # Times are rounded to tenths; the sample itself must not come again.
    return max((at + 0.1 for at in history["at"]), default=0.0)
