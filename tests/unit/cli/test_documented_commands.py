"""Every command that a page or a new project shows is one that the command line takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import make_parser

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "src/penstock/cli/templates").glob("*.template")),
]
_LINE = re.compile(r"^(?:\$ |    )?(?:[A-Z_]+=\S+ )*penstock (?P<words>.+)$")
_ENDS = {"|", "<", ">", "&&", ";"}


def commands(page: Path) -> Iterator[tuple[int, str]]:
    fenced, shell = False, page.suffix == ".template"
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
            shell = fenced and line[3:].strip() in {"sh", "console"}
        elif (shell or page.suffix == ".template") and (found := _LINE.match(line)):
            yield number, found["words"]


def words_of(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:  # a comment ends it
        if word in _ENDS:
            break
        words.append(word)
    return words


DOCUMENTED = [
    pytest.param(words, id=f"{page.name}-{number}")
    for page in PAGES
    for number, words in commands(page)
]


@pytest.mark.parametrize("command", DOCUMENTED)
def test_it_can_be_typed(command, capsys):
    words = words_of(command)
    if {"--help", "VERB"} & set(words):
        return
    try:
        make_parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"penstock {command}: {capsys.readouterr().err}")


def test_there_are_many():
    assert len(DOCUMENTED) > 80
