"""``penstock dead-letters --give-back``: what would go back to its stream, and with --yes does."""

import argparse

from penstock.backbone.givingback import (
    MOST,
    VERDICTS,
    Choice,
    Giving,
    give_back,
    plan,
    read_record_place,
)
from penstock.cli.screen.partlines import count_text
from penstock.cli.session import Session
from penstock.core.printable import printable
from penstock.errors import ConfigurationError

__all__ = ["choice_of", "run_give_back"]


def choice_of(arguments: argparse.Namespace) -> Choice:
    """Return which letters the arguments mean; ConfigurationError where they contradict."""
    if (arguments.yes or arguments.again) and not arguments.give_back:
        raise ConfigurationError(
            "--yes and --again belong to --give-back",
            code="give-back.options",
            hint="penstock dead-letters . --give-back",
        )
    if arguments.give_back and arguments.raw:
        raise ConfigurationError(
            "--raw shows letters, --give-back gives them back", code="give-back.options"
        )
    return Choice(
        part=arguments.part,
        code=arguments.code,
        record=read_record_place(arguments.record) if arguments.record else None,
        most=min(arguments.limit or MOST, MOST) if arguments.give_back else MOST,
        again=arguments.again,
    )


def run_give_back(session: Session, choice: Choice) -> None:
    """Say what would be given back; with ``--yes`` give it back, and say what was."""
    arguments, graph = session.arguments, session.application.graph
    with session.connected() as connection:
        giving = (give_back if arguments.yes else plan)(graph, connection, choice)
    if arguments.json:
        session.terminal.json_line({"given_back": arguments.yes, **giving.document()})
        return
    _tell(session, giving)


def _tell(session: Session, giving: Giving) -> None:
    terminal, done = session.terminal, session.arguments.yes
    if not giving.counts:
        terminal.note("no such dead letters")
        return
    rows = []
    for verdict, words in VERDICTS.items():
        if count := giving.counts[verdict]:
            said = "given back" if done and verdict == "back" else words
            example, why = giving.examples[verdict][0]
            rows.append((count, said, str(example.coordinates), printable(why)))
    terminal.table(("letters", "which", "such as", "why"), rows)
    for name, count in giving.to.items():
        went = "went back to" if done else "would go back to"
        readers = ", ".join(giving.readers[name])
        terminal.note(f"{count_text(count)} {went} {name}; all that read it get them: {readers}")
    if giving.more:
        terminal.note("there are more: run it again")
    if not done and giving.counts["back"]:
        terminal.note("nothing was written; --yes gives them back")
