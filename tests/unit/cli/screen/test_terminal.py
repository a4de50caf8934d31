import io

from penstock.cli.screen.terminal import Terminal
from penstock.errors import ConfigurationError


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_is_lines_with_tabs_where_nobody_looks():
    out = io.StringIO()
    Terminal(out=out).table(("name", "count"), [("a\tb", 1), ("c", None), ("d", True)])
    assert out.getvalue() == "name\tcount\na b\t1\nc\t\nd\tyes\n"


def test_a_table_is_drawn_on_a_terminal_with_numbers_to_the_right(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    out = Screen()
    Terminal(out=out).table(("name", "count"), [("[red]a[/red]", 1), ("b", 1000)])
    drawn = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    assert "name" in drawn[0]
    assert "count" in drawn[0]
    assert drawn[-2].endswith("[red]a[/red]      1")
    assert drawn[-1].endswith("b              1000")


def test_no_color_takes_the_colours_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    error = ConfigurationError("wrong", code="x.y", detail="why", hint="do this")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Screen()
    Terminal(err=plain).error(error)
    assert "\x1b[31m" not in plain.getvalue()
    assert "31m" not in plain.getvalue()
    monkeypatch.delenv("NO_COLOR")
    coloured = Screen()
    Terminal(err=coloured).error(error)
    assert "31m" in coloured.getvalue()


def test_an_error_says_what_why_and_what_next():
    err = io.StringIO()
    error = ConfigurationError(
        "it is wrong", code="x.y", detail="here\n  and there", hint="do this"
    )
    Terminal(err=err).error(error)
    assert err.getvalue() == ("error: it is wrong [x.y]\n  here\n  and there\n  hint: do this\n")


def test_json_is_one_line_where_nobody_looks_and_indented_on_a_terminal():
    out, screen = io.StringIO(), Screen()
    Terminal(out=out).json({"a": [1, 2]})
    Terminal(out=screen).json({"a": [1, 2]})
    assert out.getvalue() == '{"a":[1,2]}\n'
    assert screen.getvalue().startswith('{\n  "a": [')
