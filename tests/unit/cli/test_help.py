"""What the help says: every verb and every argument, and the page about the command line too."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import VERBS, make_parser

PAGE = (Path(__file__).parents[3] / "docs/cli.md").read_text()


def below(
    parser: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, more in action.choices.items():
                yield from below(more, f"{name} {verb}")


def parser_of(verb: str, capsys: pytest.CaptureFixture[str]) -> argparse.ArgumentParser:
    """Return the parser of a verb, which learns its arguments when it is used."""
    whole = make_parser()
    with pytest.raises(SystemExit):
        whole.parse_args([verb, "--help"])
    capsys.readouterr()
    [verbs] = [each for each in whole._actions if isinstance(each, argparse._SubParsersAction)]
    found = verbs.choices[verb]
    assert isinstance(found, argparse.ArgumentParser)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_says_what_each_verb_does_and_what_each_argument_is(verb, capsys):
    for name, parser in below(parser_of(verb, capsys), verb):
        assert parser.description, name
        for action in parser._actions:
            listed = isinstance(action, argparse._SubParsersAction)
            assert listed or action.help, f"{name}: {action.metavar or action.option_strings}"


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_about_the_command_line_lists_each_verb(verb, capsys):
    """Verbs below another one stand in a row of it: ``topics list``, ``describe``."""
    rows = [line for line in PAGE.splitlines() if line.startswith(("| `", "| [`"))]
    for name, _ in below(parser_of(verb, capsys), verb):
        first, _, last = name.partition(" ")
        cells = [f" {row.split('|')[1]} ".replace("`", " ").replace("[", " ") for row in rows]
        of_it = [cell for cell in cells if f" {first} " in cell]
        assert any(f" {last} " in cell.replace(",", " ") for cell in of_it if last) or not last, (
            name
        )
        assert of_it, name
