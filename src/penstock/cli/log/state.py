"""``penstock state``: the state of running services, asked from the workers that own it."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from penstock.cli.arguments import add_app, add_json, add_verb, command, read_count
from penstock.cli.session import Session
from penstock.core.asking.questions import Get, Positions, Rows, Scan
from penstock.core.graph.parts import Service
from penstock.core.hints import did_you_mean
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError
from penstock.machine.peers.secret import shared_secret
from penstock.serving.tables.owners import Owners

__all__ = ["register"]

T = TypeVar("T")
Asking = Callable[[Owners], Awaitable[T]]

_DEFAULT_ROWS = 20
_MOMENT = timedelta(seconds=5)
_PAGE_BYTES = 8 << 20


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs and their arguments."""
    verbs = parser.add_subparsers(metavar="stores|get|scan", required=True)
    stores = add_verb(verbs, "stores", "show the states of an application, and who has them")
    add_app(stores)
    add_json(stores)
    command(stores, _stores)
    get = add_verb(verbs, "get", "show the value of a key")
    _add_state(get)
    get.add_argument("key", metavar="KEY", help="the key, as text")
    add_json(get)
    command(get, _get)
    scan = add_verb(verbs, "scan", "show the values of keys, in the order of the keys")
    _add_state(scan)
    scan.add_argument("--prefix", default="", metavar="TEXT", help="only keys that begin with TEXT")
    scan.add_argument("--after", metavar="KEY", help="only keys after this one")
    scan.add_argument(
        "--limit", type=read_count, default=_DEFAULT_ROWS, metavar="N", help="at most N keys (20)"
    )
    add_json(scan)
    command(scan, _scan)


def _add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="SERVICE.STATE", help="a state of a service")
    add_app(parser, flag=True)
    parser.set_defaults(app=".")


def _stores(session: Session) -> None:
    services = [
        part
        for part in session.application.graph.parts
        if isinstance(part, Service) and part.states
    ]

    async def look(owners: Owners) -> list[dict[str, Any]]:
        found = []
        for service in services:
            routes = await owners.routes(service)
            found += [
                {
                    "state": f"{service.name}.{state.name}",
                    "kind": state.kind,
                    "tasks": routes.count,
                    "running": len(routes.addresses),
                    "workers": sorted(set(routes.addresses.values())),
                }
                for state in service.states
            ]
        return found

    rows = _with_owners(session, look)
    if session.arguments.json:
        session.terminal.json(rows)
        return
    columns = ("state", "kind", "tasks", "running", "workers")
    texts = [row | {"workers": ", ".join(row["workers"])} for row in rows]
    session.terminal.table(columns, [tuple(row.values()) for row in texts])


def _get(session: Session) -> int:
    service, state = _named(session)
    key = session.arguments.key.encode("utf-8", "surrogateescape")

    async def look(owners: Owners) -> Rows:
        task = await owners.task_of(service, key)
        return await owners.ask(service, Get(service=service.name, task=task, state=state, key=key))

    found = _with_owners(session, look)
    value = msgspec.json.decode(found.rows[0][1]) if found.rows else None
    if session.arguments.json:
        session.terminal.json(
            {
                "key": session.arguments.key,
                "found": bool(found.rows),
                "value": value,
                "positions": _listed(found.positions),
                "stale_seconds": found.stale_seconds,
            }
        )
    elif found.rows:
        session.terminal.line(found.rows[0][1].decode())
        session.terminal.note(_about(found.positions, found.stale_seconds))
    else:
        session.terminal.failure(f"{service.name}.{state} has no value of this key")
    return 0 if found.rows else 1


def _scan(session: Session) -> None:
    service, state = _named(session)
    arguments = session.arguments
    prefix = arguments.prefix.encode("utf-8", "surrogateescape")
    after = arguments.after
    start = b"" if after is None else after.encode("utf-8", "surrogateescape") + b"\x00"

    async def look(owners: Owners) -> list[Rows]:
        ask = partial(
            Scan,
            service=service.name,
            state=state,
            prefix=prefix,
            start=start,
            rows=arguments.limit,
            size=_PAGE_BYTES,
        )
        tasks = await owners.tasks(service)
        return await asyncio.gather(*(owners.ask(service, ask(task=task)) for task in tasks))

    several = _with_owners(session, look)
    rows = sorted(row for found in several for row in found.rows)[: arguments.limit]
    if arguments.json:
        listed = [
            {"key": key.decode("utf-8", "replace"), "value": msgspec.json.decode(value)}
            for key, value in rows
        ]
        session.terminal.json(listed)
        return
    session.terminal.table(
        ("key", "value"), [(key.decode("utf-8", "replace"), value.decode()) for key, value in rows]
    )


def _named(session: Session) -> tuple[Service, str]:
    """Return the service and the state that the arguments name."""
    graph = session.application.graph
    name, _, state = session.arguments.state.rpartition(".")
    service = find_part(graph, name, Service)
    states = [each.name for each in service.states]
    if state not in states:
        raise ConfigurationError(
            f"{name} has no state {state!r}", code="state.unknown", hint=did_you_mean(state, states)
        )
    return service, state


def _with_owners(session: Session, look: Asking[T]) -> T:
    secret = shared_secret(session.loaded.settings.serving, session.places.home)
    with session.connected() as connection:

        async def asked() -> T:
            owners = Owners(session.application.graph.app, connection.within(_MOMENT), secret)
            async with aclosing(owners):
                return await look(owners)

        return asyncio.run(asked())


def _listed(positions: Positions) -> dict[str, dict[str, int]]:
    return {
        topic: {str(number): offset for number, offset in sorted(offsets.items())}
        for topic, offsets in positions.items()
    }


def _about(positions: Positions, stale_seconds: float | None) -> str:
    places = [
        f"{topic}[{number}] before {offset}"
        for topic, offsets in positions.items()
        for number, offset in sorted(offsets.items())
    ]
    age = "of unknown age" if stale_seconds is None else f"at most {stale_seconds:.1f}s old"
    return f"  {', '.join(places)}; {age}"
