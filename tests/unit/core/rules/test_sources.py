"""What can be seen of a source's parse before it runs."""

from penstock import App, record
from penstock.connectors import tcp_lines
from penstock.core.rules.check import check


@record()
class Line:
    text: str


@record(key="word")
class Word:
    word: str


def problems(parse):
    app = App("app")
    lines = app.stream("lines", Line)
    app.source("net", tcp_lines(), into=lines, parse=parse)
    return check(app.graph)


def test_a_parse_that_makes_another_record_is_told():
    [problem] = problems(Word)
    assert problem.code == "source.parse"
    assert "parse makes Word, but its stream 'lines' holds Line" in problem.message
    assert problem.hint == "give it another stream, or a function that returns Line"


def test_the_class_of_the_stream_and_any_function_may_parse():
    assert problems(Line) == []
    assert problems(str.upper) == []  # its result is checked when it runs


def test_a_name_given_twice_is_the_only_thing_told():
    app = App("app")
    lines = app.stream("lines", Line)
    app.stream("lines", Word)
    words = app.stream("words", Word)

    @app.service(reads=lines, writes=words)
    def split(line: Line) -> Word:
        return Word(line.text)

    assert {problem.code for problem in check(app.graph)} == {"name.twice"}
