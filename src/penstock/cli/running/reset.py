"""``penstock reset``: restart a service at the beginning of its input, and rebuild its state."""

import argparse

from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.screen.partlines import count_text
from penstock.cli.session import Session
from penstock.core.graph.parts import Service
from penstock.errors import ConfigurationError

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument("--part", required=True, metavar="NAME", help="a service")
    parser.add_argument(
        "--yes",
        action="store_true",
        help="delete offsets and state; the output is written again",
    )
    add_json(parser)
    command(parser, _reset)


def _reset(session: Session) -> None:
    from penstock.core.wiring.lookup import find_parts
    from penstock.services.reset import reset_service

    (part,) = find_parts(session.application.graph, [session.arguments.part])
    if not isinstance(part, Service):
        raise ConfigurationError(
            f"{part.name!r} is a {part.kind}: only services can be reset",
            code="reset.not-a-service",
            hint=f"to recompute a pipeline: penstock rebuild {part.name}",
        )
    if not session.arguments.yes:
        raise ConfigurationError(
            f"resetting {part.name} deletes its offsets and its state: its next run reads its input"
            " from the oldest record and writes all its output again",
            code="reset.unconfirmed",
            hint=f"penstock reset {session.arguments.app} --part {part.name} --yes",
        )
    with session.connected() as connection:
        waiting = reset_service(session.application.graph, part, connection)
    if session.arguments.json:
        session.terminal.json({"part": part.name, "waiting": waiting})
        return
    session.terminal.note(
        f"{part.name} starts again with its next run: {count_text(waiting)} offsets to read"
    )
