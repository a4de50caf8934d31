"""``penstock dead-letters``: the records that an application could not use, and why."""

import argparse
from collections import deque
from collections.abc import Iterator
from typing import Any

from penstock.cli.arguments import add_app, command, read_count
from penstock.cli.records import text_of
from penstock.cli.screen.partlines import count_text
from penstock.cli.session import Session
from penstock.core.printable import printable
from penstock.core.records.deadletter import DeadLetter, read_letter

__all__ = ["register"]

_DEFAULT_COUNT = 20
_COLUMNS = ("at", "part", "record", "code", "reason", "key", "value")


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument("--part", metavar="NAME", help="only dead letters of this part")
    parser.add_argument(
        "--code", metavar="CODE", help="only dead letters with this code, such as user.raised"
    )
    parser.add_argument(
        *("--limit", "-n"),
        type=read_count,
        metavar="N",
        help=f"the newest N ({_DEFAULT_COUNT}); with --give-back: at most N, the oldest first",
    )
    parser.add_argument(
        "--record", metavar="PLACE", help="only those of one record, such as words[0]@12"
    )
    parser.add_argument(
        "--give-back",
        action="store_true",
        help="say which records would go back to their stream; with --yes, send them",
    )
    parser.add_argument("--yes", action="store_true", help="with --give-back: do it")
    parser.add_argument(
        "--again",
        action="store_true",
        help="also records that were given back three times and failed again",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument(
        "--raw", action="store_true", help="write the bytes of the values, one per line"
    )
    shape.add_argument("--json", action="store_true", help="write a line of JSON for each")
    command(parser, _dead_letters)


def _dead_letters(session: Session) -> None:
    from penstock.cli.log.givingback import choice_of, run_give_back

    arguments, terminal = session.arguments, session.terminal
    choice = choice_of(arguments)
    if arguments.give_back:
        run_give_back(session, choice)
        return
    wanted = (letter for letter in _letters(session) if choice.wants(letter))
    found = deque(wanted, maxlen=arguments.limit or _DEFAULT_COUNT)
    if arguments.raw:
        for letter in found:
            terminal.raw(letter.value or b"")
    elif arguments.json:
        for letter in found:
            terminal.json_line(_as_json(letter))
    elif found:
        terminal.table(_COLUMNS, [_row(letter) for letter in found])
        terminal.note(f"{count_text(len(found))} shown, newest last; -n N shows more")
    else:
        terminal.note(f"no dead letters in {session.application.graph.dead_letters.name}")


def _letters(session: Session) -> Iterator[DeadLetter]:
    from penstock.backbone.log.reader import LogReader
    from penstock.backbone.topics.topics import Topics

    topic = session.application.graph.dead_letters.name
    with session.connected() as connection:
        if topic not in {state.name for state in Topics(connection).list()}:
            return  # it is declared with the first run
        for record in LogReader(connection).read(topic, when_trimmed="skip"):
            yield read_letter(record.key, record.value, record.headers)


def _row(letter: DeadLetter) -> tuple[str, ...]:
    key = "null" if letter.key is None else text_of(letter.key)
    value = "null" if letter.value is None else printable(text_of(letter.value))
    place = str(letter.coordinates)
    return letter.at, letter.part, place, letter.code, letter.reason, printable(key), value


def _as_json(letter: DeadLetter) -> dict[str, Any]:
    return {
        "at": letter.at,
        "part": letter.part,
        "topic": letter.coordinates.topic,
        "partition": letter.coordinates.partition,
        "offset": letter.coordinates.offset,
        "code": letter.code,
        "reason": letter.reason,
        "key": None if letter.key is None else text_of(letter.key),
        "value": None if letter.value is None else text_of(letter.value),
        "headers": {name: text_of(value) for name, value in letter.headers},
    }
