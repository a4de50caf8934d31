"""The word count of the tutorial: its services in the driver, its rules against a recount."""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock.core.rules.check import check
from penstock.testing import Driver

DIRECTORY = Path(__file__).parents[3] / "apps" / "wordcount"
LINES = (DIRECTORY / "mariner.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def wordcount():
    spec = importlib.util.spec_from_file_location("wordcount_app", DIRECTORY / "app.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def recount(lines: list[str]) -> Counter[str]:
    """Count without a regular expression of the application: letters, digits, inner apostrophes."""
    cleaned = ("".join(c if c.isalnum() or c == "'" else " " for c in line) for line in lines)
    words = (word.strip("'").lower() for line in cleaned for word in line.split())
    return Counter(word for word in words if word)


def counted(driver: Driver, wordcount) -> dict[str, int]:
    return {word: found.count for word, found in driver.table(wordcount.counts).items()}


def test_the_application_has_no_problems(wordcount):
    assert check(wordcount.app.graph) == []


def test_the_classic_example_is_counted_as_everybody_counts_it(wordcount):
    driver = Driver(wordcount.app)
    text = [
        "NE Scala 2016 Apache",
        "Apache Spark Storm",
        "Apache Trident Flink",
        "Streaming Samza Scala",
        "2016 Streaming",
    ]
    driver.pipe(wordcount.lines, *map(wordcount.Line, text))
    often = {"apache": 3, "streaming": 2, "scala": 2, "2016": 2}
    once = dict.fromkeys(["spark", "storm", "trident", "flink", "samza", "ne"], 1)
    assert counted(driver, wordcount) == often | once


def test_the_whole_book_is_counted_as_an_independent_recount_says(wordcount):
    driver = Driver(wordcount.app)
    driver.pipe(wordcount.lines, *map(wordcount.Line, LINES))
    assert counted(driver, wordcount) == recount(LINES)
    assert driver.dead_letters() == []


def test_counts_survive_crashes_before_every_commit(wordcount):
    driver = Driver(wordcount.app, auto_commit=False)
    for start in range(0, 60, 20):
        driver.pipe(wordcount.lines, *map(wordcount.Line, LINES[start : start + 20]))
        driver.crash()
        driver.restart()
        driver.commit()
        driver.crash(wordcount.count)
        driver.restart()
    driver.commit()
    assert counted(driver, wordcount) == recount(LINES[:60])


def test_a_words_state_is_its_count(wordcount):
    driver = Driver(wordcount.app)
    driver.pipe(wordcount.lines, wordcount.Line("Water, water, every where"))
    assert driver.state(wordcount.count, "water") == 2
    assert driver.state(wordcount.count, "fire") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Nor any drop to drink.", ["nor", "any", "drop", "to", "drink"]),
        ("'Twas right, said they,", ["twas", "right", "said", "they"]),
        (
            "Why look'st thou so?' With my cross-bow",
            ["why", "look'st", "thou", "so", "with", "my", "cross", "bow"],
        ),
        ("'''", []),
        ("Coleridge, 1834", ["coleridge", "1834"]),
    ],
)
def test_words_are_letters_or_digits_with_apostrophes_only_inside(wordcount, text, words):
    assert [word.word for word in wordcount.split(wordcount.Line(text))] == words


def test_the_word_pattern_is_safe_inside_a_sql_text(wordcount):
    assert re.fullmatch(r'[^"\\]+', wordcount.WORD)
