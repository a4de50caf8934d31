"""Word count, the first program of every stream processor, on both engines at once.

::

    book, socket, keyboard ──▶ lines ──▶ split ──▶ words ──▶ count ──▶ counts
                                 │                   └────▶ keep_long ──▶ long_words
                                 └──▶ count_in_spark ──▶ spark_counts

``split`` and ``count`` are services: one record at a time. ``keep_long`` and ``count_in_spark``
are pipelines: DataFrames, on Spark. In each pair the first is stateless, the second stateful. Both
tables hold the same counts in the end, whatever is killed in between.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import App, State, record
from penstock.connectors import keyboard, tcp_lines, text_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HERE = Path(__file__).parent
WORD = "[A-Za-z0-9]+(?:'[A-Za-z]+)*"
"""What a word is, for Python and for Spark: letters or digits, an apostrophe only inside."""

app = App("wordcount")


# Records: typed classes. The key says which records belong together.


@record()
class Line:
    """A line of text, as it came."""

    text: str


@record(key="word")
class Word:
    """One word of a line, in small letters."""

    word: str


@record(key="word")
class Count:
    """How often a word has come so far."""

    word: str
    count: int


# Data on the log: a stream holds every record, a table the latest of each key.

lines = app.stream("lines", Line)
words = app.stream("words", Word)
long_words = app.stream("long_words", Word)
counts = app.table("counts", Count)
spark_counts = app.table("spark_counts", Count)


# Sources: where lines come from. `penstock dev` runs the first two; the keyboard wants a terminal.

app.source("book", text_file(HERE / "mariner.txt", repeat=True, rate=50), into=lines, parse=Line)
app.source("socket", tcp_lines(), into=lines, parse=Line)
app.source("keyboard", keyboard(), into=lines, parse=Line)


# Services: a function of one record. What it returns is written, exactly once.


@app.service(reads=lines, writes=words)
def split(line: Line) -> Iterator[Word]:
    """Give the words of a line."""
    for word in re.findall(WORD, line.text):
        yield Word(word.lower())


@app.service(reads=words, writes=counts)
def count(word: Word, seen: State[int]) -> Count:
    """Count a word; ``seen`` is this word's own number and survives everything."""
    total = seen.get(0) + 1
    seen.set(total)
    return Count(word.word, total)


# Pipelines: a function from DataFrames to a DataFrame, run by Spark as a stream or over the past.


@app.pipeline(reads=words, writes=long_words)
def keep_long(words: "DataFrame") -> "DataFrame":
    """Keep the words of ten letters and more."""
    return words.where("length(word) >= 10")


@app.pipeline(reads=lines, writes=spark_counts)
def count_in_spark(lines: "DataFrame") -> "DataFrame":
    """Split the lines and count the words, as ``split`` and ``count`` do."""
    words = lines.selectExpr(f'explode(regexp_extract_all(text, "{WORD}", 0)) AS word')
    return words.selectExpr("lower(word) AS word").groupBy("word").count()
