"""``penstock live``: a live query in a terminal, asked from the services that answer it."""

import argparse
import asyncio
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.session import Session
from penstock.core.feeds.shared import SharedQuery, shared_query
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.hints import did_you_mean
from penstock.errors import ConfigurationError
from penstock.serving.live.alone import followed

__all__ = ["register"]

_SIGNS = {"add": "+", "change": "~", "changeIndex": ">", "remove": "-"}


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "query",
        metavar="QUERY",
        nargs="?",
        default="{}",
        help="a filter such as \"list = 'home'\", or a query as JSON; default: everything",
    )
    parser.add_argument(
        "--live", default="", metavar="NAME", help="the live queries, where there are several"
    )
    parser.add_argument(
        "--once", action="store_true", help="end when the first result has been shown"
    )
    add_json(parser)
    command(parser, _live)


def _live(session: Session) -> None:
    arguments = session.arguments
    live = _found(session.application.graph, arguments.live)
    query = shared_query(_query_text(arguments.query))
    with session.connected() as connection, suppress(KeyboardInterrupt):
        asyncio.run(_follow(session, connection, live, query))


def _found(graph: Graph, name: str) -> LiveQueries:
    """Return the live queries that are meant: those that a gateway of the application offers."""
    parts = [part for part in graph.parts if isinstance(part, Gateway)]
    known = {live.name: live for part in parts for live in part.live}
    if not name and len(known) == 1:
        return next(iter(known.values()))
    if name in known:
        return known[name]
    raise ConfigurationError(
        f"there are no live queries {name!r}" if name else "say which live queries: --live NAME",
        code="live.unknown",
        hint=did_you_mean(name, [*known]) if known else 'app.gateway("door", live=live)',
    )


def _query_text(given: str) -> str:
    """Return a query as JSON; what is no object is a filter."""
    if given.lstrip().startswith("{"):
        return given
    return msgspec.json.encode({"filter": given}).decode()


async def _follow(
    session: Session, connection: Connection, live: LiveQueries, query: SharedQuery
) -> None:
    most = session.loaded.settings.serving.live_bytes
    async with aclosing(followed(live, connection, query, most_bytes=most)) as messages:
        async for message in messages:
            if message is None:
                continue
            _show(session, message)
            if session.arguments.once and message["type"] == "ready":
                return


def _show(session: Session, message: dict[str, Any]) -> None:
    terminal = session.terminal
    if session.arguments.json:
        terminal.json_line(message)
        return
    kind = message["type"]
    if kind == "first":
        for document in message["documents"]:
            terminal.row((" ", "", msgspec.json.encode(document).decode()))
    elif kind == "changes":
        for event in message["events"]:
            index = event.get("index", "")
            text = msgspec.json.encode(event["document"]).decode()
            terminal.row((_SIGNS[event["what"]], index, text))
    elif kind == "ready":
        terminal.note("that is the result; changes follow (Ctrl-C ends)")
    elif kind == "must-refetch":
        terminal.note(f"the result comes anew: {message['reason']}")
    elif kind == "error":
        problem = message["problem"]
        raise ConfigurationError(problem["detail"], code=problem["code"])
