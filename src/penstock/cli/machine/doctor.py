"""``penstock doctor``: what is installed, what is missing, and the command that fixes it."""

import argparse

from penstock.cli.arguments import add_json, command
from penstock.cli.machine.checkup import Finding, check_up
from penstock.cli.screen.terminal import Terminal
from penstock.cli.session import Session
from penstock.core.printable import printable

__all__ = ["register"]

_STYLES = {"ok": "green", "warn": "yellow", "missing": "bold red"}


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_json(parser)
    command(parser, _doctor)


def _doctor(session: Session) -> int:
    findings = []
    for finding in check_up(lambda: session.loaded):
        findings.append(finding)
        if not session.arguments.json:
            _write(session.terminal, finding)
    missing = [finding for finding in findings if finding.state == "missing"]
    if session.arguments.json:
        session.terminal.json({"ok": not missing, "findings": findings})
    elif missing:
        count = f"{len(missing)} thing{'' if len(missing) == 1 else 's'}"
        session.terminal.failure(f"{count} missing")
    return 1 if missing else 0


def _write(terminal: Terminal, finding: Finding) -> None:
    mend = f"\n{'':24}→ {printable(finding.mend)}" if finding.mend else ""
    text = f"{finding.check:<14}  {printable(finding.text)}{mend}"
    if not terminal.draws:
        terminal.lines(f"{finding.state:<7} {text}")
        return
    from rich.text import Text

    state = (f"{finding.state:<7} ", _STYLES[finding.state])
    terminal.console.print(Text.assemble(state, text), soft_wrap=True)
