"""``penstock check``: every problem of an application and its settings, before anything starts."""

import argparse
from typing import Any

from penstock.cli.application.online import try_connections
from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.load import load_application
from penstock.cli.screen.terminal import problem_text, shortened
from penstock.cli.session import Session
from penstock.connectors import Lookup
from penstock.core.drawing.text import counted
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import ON_SPARK
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, DefinitionError, Problem
from penstock.machine.packages import INSTALL_SPARK, missing_spark_packages
from penstock.serving.pages.missing import page_problems

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    add_json(parser)
    parser.add_argument(
        "--online",
        action="store_true",
        help="also try the connection of each source, sink and look-up, and say what is wrong",
    )
    command(parser, _check)


def _check(session: Session) -> int:
    graph: Graph | None = None
    lookups: dict[str, Lookup[Any]] = {}
    try:
        loaded = load_application(session.arguments.app)
        graph, lookups = loaded.graph, loaded.lookups
        problems = [*check(graph), *page_problems(graph), *_without_spark(graph)]
    except DefinitionError as error:
        problems = list(error.problems)
    problems += _configured_wrongly(session)
    terminal = session.terminal
    tried: dict[str, str] = {}
    if session.arguments.online and graph is not None and not problems:
        tried, problems = try_connections(graph, lookups)
    if session.arguments.json:
        app = graph.app if graph else None
        found = [_as_json(problem) for problem in problems]
        connections = {"connections": tried} if session.arguments.online else {}
        terminal.json({"app": app, "ok": not problems, "problems": found} | connections)
    elif graph is not None and not problems:
        terminal.line(f"ok: {graph.app} has {counted(graph)}")
        for part, text in tried.items():
            terminal.line(f"ok: {part}: {text}")
    else:
        for problem in problems:
            terminal.lines(problem_text(problem))
        terminal.failure(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0


def _without_spark(graph: Graph) -> list[Problem]:
    """Return the problem that keeps pipelines from running in this Python, if there is one."""
    pipelines = [part for part in graph.parts if part.kind in ON_SPARK]
    missing = missing_spark_packages()
    if not pipelines or not missing:
        return []
    others = f" and {len(pipelines) - 1} more" if len(pipelines) > 1 else ""
    first, lacks = pipelines[0], ", ".join(missing)
    text = f"{first.kind} {first.name!r}{others} cannot run: there is no {lacks}"
    return [Problem("spark.missing", text, INSTALL_SPARK, pipelines[0].place)]


def _configured_wrongly(session: Session) -> list[Problem]:
    """Return the problem that keeps the configuration from being read, if there is one."""
    try:
        _ = session.loaded
    except ConfigurationError as error:
        detail = f"\n  {error.detail}" if error.detail else ""
        return [Problem(error.code, f"{error.message}{detail}", error.hint)]
    return []


def _as_json(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
        "file": shortened(problem.place.file) if problem.place else None,
        "line": problem.place.line if problem.place else None,
    }
