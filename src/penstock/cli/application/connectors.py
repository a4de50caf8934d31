"""``penstock connectors``: which connectors there are, and every option of one."""

import argparse
from dataclasses import asdict

from penstock.cli.arguments import add_json, add_verb, command
from penstock.cli.session import Session
from penstock.core.printable import printable

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    verbs = parser.add_subparsers(metavar="list|describe", required=True)
    listed = add_verb(verbs, "list", "show all connectors, also those of other packages")
    add_json(listed)
    command(listed, _list)
    described = add_verb(verbs, "describe", "show one connector with all its options")
    described.add_argument(
        "name", metavar="NAME", help="the name of a connector, such as postgres_table"
    )
    add_json(described)
    command(described, _describe)


def _list(session: Session) -> None:
    from penstock.connectors import CONNECTORS
    from penstock.connectors.catalogue import entries

    found = entries(CONNECTORS)
    if session.arguments.json:
        session.terminal.json([asdict(entry) for entry in found])
        return
    rows = [
        (each.name, each.direction, each.promise, each.package, printable(each.summary))
        for each in found
    ]
    session.terminal.table(("name", "is a", "promise", "from", "it does"), rows)


def _describe(session: Session) -> None:
    from penstock.connectors import CONNECTORS
    from penstock.connectors.catalogue import entries, entry_of

    entry = entry_of(session.arguments.name, entries(CONNECTORS))
    if session.arguments.json:
        session.terminal.json(asdict(entry))
        return
    terminal = session.terminal
    terminal.line(f"{entry.name}: {entry.direction}, {entry.promise}, from {entry.package}")
    terminal.line("")
    for line in entry.text.split("\n"):
        terminal.line(printable(line))
    terminal.line("")
    rows = [(o.name, o.kind, o.default or "(required)", o.meaning) for o in entry.options]
    terminal.table(("option", "type", "default", "meaning"), rows)
