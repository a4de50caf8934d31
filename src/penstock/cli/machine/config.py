"""``penstock config``: every setting, its value, and where that came from."""

import argparse
from typing import Any

from penstock.cli.arguments import add_json, add_verb, command
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.core.settings.configuration import Resolved
from penstock.core.settings.keys import shown, variable_of
from penstock.core.settings.settings import Secret

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    verbs = parser.add_subparsers(metavar="show|explain", required=True)
    show = add_verb(verbs, "show", "show all settings")
    add_json(show)
    command(show, _show)
    explain = add_verb(verbs, "explain", "show one setting and where it came from")
    explain.add_argument("key", metavar="KEY", help="the key, such as kafka.bootstrap")
    add_json(explain)
    command(explain, _explain)


def _show(session: Session) -> None:
    loaded = session.loaded
    resolved = loaded.configuration.resolved
    if session.arguments.json:
        session.terminal.json(
            {
                "file": str(loaded.file) if loaded.file else None,
                "profile": loaded.profile,
                "home": str(loaded.places.home),
                "settings": {name: _as_json(found) for name, found in resolved.items()},
            }
        )
        return
    file = shortened(loaded.file) if loaded.file else "none (defaults only)"
    profile = f", profile {loaded.profile}" if loaded.profile else ""
    session.terminal.note(f"file: {file}{profile}")
    rows = [(name, shown(found.value), found.where) for name, found in resolved.items()]
    session.terminal.table(("key", "value", "from"), rows)


def _explain(session: Session) -> None:
    found = session.loaded.configuration.explain(session.arguments.key)
    if session.arguments.json:
        session.terminal.json(_as_json(found) | {"key": found.key.name})
        return
    terminal = session.terminal
    terminal.line(f"{found.key.name} = {_text(found)}")
    terminal.line(f"  from      {_origin(found)}")
    for past in found.overrode:
        terminal.line(f"  overrides {_text(past)} from {_origin(past)}")
    terminal.line(f"  is        {found.key.help}")
    flag = "" if isinstance(found.value, Secret) else f"--set {found.key.name}=... or "
    terminal.line(f"  set it    {flag}{variable_of(found.key.name)}=...")


def _text(found: Resolved) -> str:
    value = shown(found.value)
    return repr(value) if isinstance(value, str) else str(value)


def _origin(found: Resolved) -> str:
    return "the default" if found.layer == "default" else f"{found.layer}, {found.where}"


def _as_json(found: Resolved) -> dict[str, Any]:
    past = [
        {"value": shown(each.value), "layer": each.layer, "where": each.where}
        for each in found.overrode
    ]
    return {
        "value": shown(found.value),
        "layer": found.layer,
        "where": found.where,
        "overrode": past,
        "help": found.key.help,
    }
