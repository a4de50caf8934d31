"""``penstock lake``: the tables of the lake as they are, their past, and their upkeep."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import add_app, add_json, add_verb, command
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.core.graph.data import Lake
from penstock.core.hints import did_you_mean
from penstock.core.units import duration_text
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.pipelines.lake.view import LakeView

__all__ = ["register"]

_CHANGES = 20
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    actions = parser.add_subparsers(metavar="list|describe|history|maintain", required=True)

    def action(name: str, text: str, run: Callable[[Session], None]) -> argparse.ArgumentParser:
        found = add_verb(actions, name, text)
        add_app(found)
        add_json(found)
        command(found, run)
        return found

    action("list", "show the lake tables of an application", _list)
    one = action("describe", "show one table: fields, partitions, files", _describe)
    one.add_argument("table", metavar="NAME", help="a lake table")
    past = action("history", "show the versions of a table that you can read", _history)
    past.add_argument("table", metavar="NAME", help="a lake table")
    past.add_argument("--limit", type=int, default=_CHANGES, metavar="N", help="the newest N")
    kept = action("maintain", "delete expired days, compact files, delete old files", _maintain)
    kept.add_argument("table", metavar="NAME", nargs="?", help="one lake table; default: all")


def _list(session: Session) -> None:
    lakes = _lakes(session)
    with _view(session) as view:
        found = [(lake, view.table(lake)) for lake in lakes]
    if session.arguments.json:
        session.terminal.json([_facts(lake) | shape for lake, shape in found])
        return
    session.terminal.table(
        ("table", "rows", "files", "size", "partitions", "version", "changed", "by"),
        [
            (
                *(lake.name, shape["rows"], shape["files"], _size(shape["bytes"])),
                *(len(shape["partitions"]), shape["version"]),
                *(shape["changed_at"], shape["changed_by"]),
            )
            for lake, shape in found
        ],
    )


def _describe(session: Session) -> None:
    lake = _chosen(session)
    with _view(session) as view:
        shape = view.table(lake)
    whole = _facts(lake) | shape
    if session.arguments.json:
        session.terminal.json(whole)
        return
    words = whole | {
        "partition_by": ", ".join(whole["partition_by"]),
        "size": _size(shape["bytes"]),
        "path": shortened(shape["path"]),
    }
    for name in ("bytes", "partitions", "fields"):
        del words[name]
    session.terminal.table(
        ("what", "is"), [(name.replace("_", " "), value) for name, value in words.items()]
    )
    session.terminal.table(("field", "type"), list(shape["fields"].items()))
    if shape["partitions"]:
        session.terminal.table(
            ("partition", "rows", "files", "size"),
            [
                (
                    ", ".join(f"{key}={value}" for key, value in each["values"].items()) or "all",
                    *(each["rows"], each["files"], _size(each["bytes"])),
                )
                for each in shape["partitions"]
            ],
        )


def _history(session: Session) -> None:
    lake = _chosen(session)
    with _view(session) as view:
        found = view.history(lake, limit=session.arguments.limit)
    if session.arguments.json:
        session.terminal.json(found)
        return
    session.terminal.table(
        ("version", "at", "by", "files added", "files removed", "rows written"),
        [
            (
                *(each["version"], each["at"], each["by"]),
                *(each["files_added"], each["files_removed"], each["rows_written"]),
            )
            for each in found
        ],
    )


def _maintain(session: Session) -> None:
    lakes = [_chosen(session)] if session.arguments.table else _lakes(session)
    with _view(session) as view:
        for lake in lakes:
            done = view.maintain(lake, now=datetime.now(UTC))
            if session.arguments.json:
                session.terminal.json_line(done)
            else:
                session.terminal.line(f"{lake.name}: {done}")


@contextmanager
def _view(session: Session) -> Iterator["LakeView"]:
    """Give the lake as Spark sees it."""
    session.prepare_spark()
    from penstock.pipelines.lake.view import lake_view

    if session.terminal.draws_notes:
        session.terminal.note("asking Spark")
    with lake_view(session.application.graph.app, session.loaded) as view:
        yield view


def _lakes(session: Session) -> list[Lake[Any]]:
    graph = session.application.graph
    found = [data for data in graph.data if isinstance(data, Lake)]
    if not found:
        raise ConfigurationError(
            f"{graph.app} has no lake tables",
            code="lake.none",
            hint='declare one: app.lake("name", Record), and a pipeline that writes it',
        )
    return found


def _chosen(session: Session) -> Lake[Any]:
    lakes = {lake.name: lake for lake in _lakes(session)}
    wanted = session.arguments.table
    if wanted not in lakes:
        raise ConfigurationError(
            f"there is no lake table {wanted!r}",
            code="lake.unknown",
            hint=did_you_mean(wanted, list(lakes)),
        )
    return lakes[wanted]


def _facts(lake: Lake[Any]) -> dict[str, Any]:
    """Return what is declared."""
    return {
        "table": lake.name,
        "record": lake.record.name,
        "partition_by": [str(part) for part in lake.partition_by],
        "retention": "for ever" if lake.retention is None else duration_text(lake.retention),
        "history": duration_text(lake.history),
    }


def _size(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.4g} {unit}"
        count /= _STEP
    return f"{count:.4g} {_UNITS[-1]}"
