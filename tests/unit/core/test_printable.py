import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.printable import LINE_CHARACTERS, json_printable, printable, printable_lines

hostile = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "hostile.py")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/red] \\x", "plain [red]text[/red] \\x"),
        ("José 日本語 ❤️ 1\u00a0000", "José 日本語 ❤️ 1\u00a0000"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("\u202eb\u2028\u200b", "\\u202eb\\u2028\\u200b"),
        (
            "👨\u200d👩\u200d👧 🏳️\u200d🌈 می\u200cبم",
            "👨\u200d👩\u200d👧 🏳️\u200d🌈 می\u200cبم",
        ),
        (
            "क" + "\u093c" * 8 + "\u200d" + "\u093c" * 2,
            "क" + "\u093c" * 8 + "\\u200d" + "\u093c" * 2,
        ),
        ("a\u200db👨\u200d é\u200dé\u200c", "a\\u200db👨\\u200d é\\u200dé\\u200c"),
        ("\ud800\ue000\U000e0041\u0378", "\\ud800\\ue000\\U000e0041\\u0378"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 8 + "\\u0301"),
    ],
)
def test_what_would_act_is_shown_and_the_rest_is_left_as_it_is(text, shown):
    assert printable(text) == shown


def test_what_has_no_end_is_cut_and_says_by_how_much():
    assert printable("x" * 7, most=3) == "xxx… (+4 characters)"
    shown = printable("\x1b" * 10 * LINE_CHARACTERS)
    assert len(shown) < 5 * LINE_CHARACTERS
    assert shown.endswith(f"… (+{9 * LINE_CHARACTERS} characters)")
    assert len(printable_lines("a\n" * 1_000_000)) < 10_000


@given(st.text(st.characters()))
def test_nothing_that_acts_is_left_of_any_text(text):
    shown = printable(text)
    assert hostile.harm_in(shown) == []
    assert "\n" not in shown
    assert "\t" not in shown
    assert printable(shown) == shown
    shown.encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_printable_json_has_the_same_value(text):
    shown = json_printable(msgspec.json.encode({text: text}).decode())
    assert json.loads(shown) == {text: text}
    assert all(letter.isprintable() or letter == "\u00a0" or letter.isspace() for letter in shown)
    assert not set("\r\n\t\x85\u2028\u2029\x1b\x9b\u202e") & set(shown)
