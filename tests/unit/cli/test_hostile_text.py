"""Text from outside through everything that shows it: the terminal, every verb, every drawing.

A verb is found by the command line's own parsers, so that a new one is in these tests by itself.
"""

import argparse
import ast
import inspect
import io
import logging
import runpy
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

import penstock.cli
from penstock import App, record
from penstock.backbone.client.logrecord import LogRecord
from penstock.cli.main import main, make_parser
from penstock.cli.records import Columns, by_type, plainly
from penstock.cli.screen.logformat import PrintableFormatter, tell_of_threads
from penstock.cli.screen.progressbar import progress_bar
from penstock.cli.screen.terminal import Terminal
from penstock.cli.status.page import StatusPage
from penstock.cli.supervision.statusview import LiveView, PlainView, Status
from penstock.core.drawing.svg import draw_svg
from penstock.core.drawing.text import draw_mermaid, draw_text
from penstock.core.graph.graph import Graph
from penstock.core.records.deadletter import Coordinates, dead_letter_headers, read_letter
from penstock.core.status.exposition import prometheus_text, series
from penstock.core.status.report import PartReport, decode_report, encode_report
from penstock.core.status.status import PartStatus, RunStatus
from penstock.errors import ConfigurationError, DefinitionError, Problem, UserCodeError
from penstock.machine.process.registry import Registry, RunEntry

hostile = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "hostile.py")))
AT = datetime(2026, 1, 1, tzinfo=UTC)
EVIL, ENDLESS, WHOLE = hostile.HOSTILE, hostile.ENDLESS, hostile.WHOLE
ARGUMENT = WHOLE.replace("\0", "")


@pytest.fixture(autouse=True)
def _plain_drawing(monkeypatch):
    """Let the drawing library write no sequences of its own: what is left came from outside."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture(params=["terminal", "file"])
def streams(request):
    made = hostile.Tty if request.param == "terminal" else io.StringIO
    return made(), made()


def verbs() -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield every verb with its parser, the verbs below it as ones of their own."""

    def below(words, parser):
        if verb := getattr(parser, "verb", None):
            import_module(f"penstock.cli.{verb.module}").register(parser)
            parser.verb = None
        inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        if not inner:
            yield words, parser
        for action in inner:
            for name, each in action.choices.items():
                yield from below((*words, name), each)

    yield from below((), make_parser())


VERBS = list(verbs())


def hostile_words(parser: argparse.ArgumentParser, *, app: str) -> list[str]:
    """Return arguments of a verb: the application, and everything else it must have hostile."""
    words: list[str] = []
    for action in parser._actions:
        text = app if action.dest == "app" else ARGUMENT
        if action.dest == "app" and action.option_strings:
            words += ["--app", app]
        elif action.required and action.option_strings:
            words += [f"{action.option_strings[0]}={text}"]
        elif not action.option_strings and action.nargs != "?":
            words += ["--", text] if action.dest != "app" else [text]
        elif not action.option_strings and action.dest == "app":
            words += [text]
    if words.count("--") > 1:
        at = words.index("--")
        words = [*words[: at + 1], *(word for word in words[at + 1 :] if word != "--")]
    return words


def run(words, monkeypatch, streams) -> str:
    out, err = streams
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    with suppress(SystemExit):
        main(words)
    monkeypatch.undo()
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize("verb", VERBS, ids=[" ".join(words) for words, _ in VERBS])
@pytest.mark.parametrize("wrong", ["application", "configuration", "argument"])
def test_no_verb_passes_hostile_text_on(verb, wrong, project, monkeypatch, streams):
    words, parser = verb
    if wrong == "application":
        (project / "app.py").write_text(f"raise ValueError({EVIL!r})\n")
    elif wrong == "configuration":
        escaped = msgspec.json.encode(WHOLE).decode().replace("\x7f", "\\u007f")
        (project / "penstock.toml").write_text(f"[kafka]\n{escaped} = {escaped}\n")
    # Whatever it would run is refused before: nothing is started.
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("PENSTOCK_KAFKA_REQUEST_TIMEOUT", "100ms")
    monkeypatch.setenv("PENSTOCK_CACHE", str(project / "cache"))
    monkeypatch.setenv("PENSTOCK_MAVEN_MIRROR", (project / "none").as_uri())
    app = ARGUMENT if wrong == "argument" else "app.py"
    given = hostile_words(parser, app=app)
    shown = run([*words, *given], monkeypatch, streams)
    assert hostile.harm_in(shown) == []


def test_every_way_of_writing_to_the_terminal_makes_its_text_printable(streams):
    problem = Problem("x.y", EVIL, EVIL)
    calls = {
        "line": [EVIL],
        "lines": [EVIL.replace("\nFORGED", "\n")],
        "row": [[EVIL, ENDLESS]],
        "raw": [WHOLE.encode()],
        "json": [{EVIL: [EVIL, problem]}],
        "json_line": [{EVIL: [EVIL]}],
        "note": [EVIL],
        "notes_below": [EVIL.replace("\nFORGED", "\n")],
        "warn": [ENDLESS],
        "table": [(EVIL, ENDLESS), [(EVIL, ENDLESS), (1, None)]],
        "error": [ConfigurationError(EVIL, code="x.y", detail=EVIL.lower(), hint=EVIL)],
        "trace": [ValueError(EVIL.lower())],
        "failure": [EVIL],
    }
    methods = {
        name
        for name, _ in inspect.getmembers(Terminal, inspect.isfunction)
        if not name.startswith("_")
    }
    assert set(calls) == methods
    for name, arguments in calls.items():
        out, err = type(streams[0])(), type(streams[1])()
        if name == "raw" and not out.isatty():
            continue  # bytes for a program
        getattr(Terminal(out=out, err=err), name)(*arguments)
        assert hostile.harm_in(out.getvalue() + err.getvalue()) == [], name
        if name.startswith("json"):
            assert msgspec.json.decode(out.getvalue())
    out, err = streams
    Terminal(out=out, err=err).error(DefinitionError((problem, problem)))
    assert hostile.harm_in(err.getvalue()) == []


def test_what_goes_past_the_methods_is_caught_where_people_look():
    out, err = hostile.Tty(), hostile.Tty()
    terminal = Terminal(out=out, err=err)
    text = EVIL.replace("\nFORGED", "")
    terminal.out.write(text)
    terminal.console.print(text)
    terminal.notes.print(text)
    assert hostile.harm_in(out.getvalue() + err.getvalue()) == []
    assert "[red]m[/red]" in out.getvalue()


def test_only_the_terminal_writes_and_draws_text():
    """A module that prints by itself, or makes a console, would go past all of this."""
    root = Path(penstock.cli.__file__).parent
    found = []
    for file in root.rglob("*.py"):
        if file.name in ("terminal.py", "screen.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called in ("print", "Console", "rich.print") or called.endswith(
                ("stdout.write", "stderr.write", "buffer.write", "print_exception", "print_exc")
            ):
                found.append(f"{file.relative_to(root)}:{node.lineno}: {called}")
    assert found == []


def log_record(key: str, value: str) -> LogRecord:
    return LogRecord(
        topic=WHOLE,
        partition=0,
        offset=7,
        timestamp_at=AT,
        key=key.encode(),
        value=value.encode(),
        headers=((WHOLE, WHOLE.encode()), ("long", ENDLESS.encode())),
    )


@record(key="word")
class Word:
    word: str


def test_records_are_shown_and_forge_nothing(streams):
    columns = Columns(Terminal(out=streams[0], err=streams[1]), headers=True)
    fields = {WHOLE: WHOLE, "offset": 999, "list": [WHOLE], "long": ENDLESS}
    many = {f"f{number}": number for number in range(10_000)}
    for value in (WHOLE, msgspec.json.encode(fields).decode(), msgspec.json.encode(many).decode()):
        columns.write(plainly(log_record(WHOLE, value)))
        columns.write(by_type(App("a").stream("words", Word))(log_record(WHOLE, value)))
    shown = streams[0].getvalue()
    assert hostile.harm_in(shown) == []
    rows = [line for line in shown.split("\n") if line and not line.startswith("partition")]
    assert len(rows) == 6
    assert all(line.split()[:2] == ["0", "7"] for line in rows)


def part(name="count", **given) -> PartStatus:
    told = {"process": name, "kind": "service", "since_seconds": 1.0, "state": "degraded"} | given
    return PartStatus(part=name, **told)


HURT = part(WHOLE, reason=WHOLE, detail={WHOLE: WHOLE, "long": ENDLESS})


@pytest.mark.parametrize("view", [LiveView, PlainView])
def test_the_status_of_dev_and_what_it_watches_are_only_shown(view):
    made = hostile.Tty if view is LiveView else io.StringIO
    out, err = made(), made()
    shown = view(Terminal(out=out, err=err))
    values = [{WHOLE: WHOLE, "count": 1}, {WHOLE: ENDLESS, "count": 2}]
    status = Status(app=WHOLE, broker=WHOLE, rows=[HURT], watched=WHOLE, values=values, hint=WHOLE)
    shown.note(EVIL)
    shown.changed(PartReport(part="p", kind="service", state="failed", at=0.0, reason=EVIL))
    shown.show(status)
    shown.close()
    assert hostile.harm_in(out.getvalue() + err.getvalue()) == []
    assert "evil" in out.getvalue() + err.getvalue()


def test_the_status_verb_only_shows_what_a_run_says_of_itself(project, monkeypatch, streams):
    with ExitStack() as stack:
        status = RunStatus(app=WHOLE, command=WHOLE, pid=1, started_at=AT, parts=(HURT,))
        page = stack.enter_context(StatusPage(lambda: status, port=0))
        registry = Registry(project / ".penstock" / "runs")
        for port in (page.port, 1):
            entry = RunEntry(app=WHOLE, command=WHOLE, pid=1, port=port, started_at=AT)
            stack.enter_context(registry.entered(entry))
        shown = run(["status"], monkeypatch, streams)
    assert "evil" in shown
    assert hostile.harm_in(shown) == []


def test_a_progress_bar_takes_its_text_literally():
    err = hostile.Tty()
    with progress_bar(Terminal(out=hostile.Tty(), err=err), WHOLE) as advance:
        advance(1, 2)
    assert hostile.harm_in(err.getvalue().replace("\r", "")) == []


def test_a_log_has_a_line_for_each_message_and_a_traceback_moved_in():
    try:
        int(EVIL)
    except ValueError:
        found = logging.LogRecord("a", logging.ERROR, "f", 1, "%s", (EVIL,), sys.exc_info())
    text = PrintableFormatter("%(levelname)s %(message)s").format(found)
    assert text.startswith("ERROR evil")
    _, *further = text.split("\n")
    assert all(line.startswith("  ") for line in further)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_nobody_takes_care_of_is_printable_too(monkeypatch, streams):
    """Threads that die, and messages that no handler takes, go to standard error by themselves."""
    monkeypatch.setattr("threading.excepthook", threading.excepthook)
    monkeypatch.setattr("sys.stderr", streams[1])
    tell_of_threads(Terminal(out=streams[0], err=streams[1]).trace)
    dying = threading.Thread(target=int, args=(EVIL.replace("\nFORGED", "\n"),))
    dying.start()
    dying.join()
    found = logging.LogRecord("a", logging.ERROR, "f", 1, "%s", (EVIL,), None)
    logging.lastResort.handle(found)
    shown = streams[1].getvalue()
    assert "ValueError" in shown
    assert "evil" in shown
    assert [harm for harm in hostile.harm_in(shown) if "forged" not in harm] == []


def named(name: str) -> Graph:
    """Return a graph with names as no check admits them: one with problems can be drawn, too."""
    app = App("plant")
    words = app.stream("words", Word)

    @app.service(reads=words)
    def count(word: Word) -> None:
        """Take it."""

    graph = app.graph
    hurt = replace(graph.on_log[0], name=name)
    return replace(graph, app=name, data=(hurt, *graph.data[1:]))


def test_drawings_show_names_as_text():
    graph = named(WHOLE)
    assert hostile.harm_in(draw_text(graph).split("\n")[0]) == []
    assert hostile.harm_in(draw_mermaid(graph)) == []
    picture = draw_svg(graph)
    assert hostile.harm_in(picture) == []
    assert not [each for each in ET.fromstring(picture).iter() if "script" in each.tag]  # noqa: S314 - our own


def test_metrics_show_labels_in_one_line():
    hurt = msgspec.structs.replace(HURT, metrics={series("panes_total", kind=WHOLE): 1})
    status = RunStatus(app=WHOLE, command="dev", pid=1, started_at=AT, parts=(hurt,))
    text = prometheus_text(status)
    assert hostile.harm_in(text) == []
    assert all(line.startswith(("#", "penstock_")) for line in text.splitlines())


def test_a_report_and_a_dead_letter_take_the_text_of_any_exception():
    report = PartReport(
        part="p", kind="service", state="failed", at=0.0, reason=EVIL + ENDLESS, detail={EVIL: EVIL}
    )
    assert hostile.harm_in(decode_report(encode_report(report)).reason) == []
    error = UserCodeError(EVIL + ENDLESS, topic="t", partition=0, offset=1)
    headers = dead_letter_headers(error, Coordinates("t", 0, 1), part="p", at=AT)
    letter = read_letter(b"k", b"v", headers)
    assert letter.reason.startswith("evil\\x1b]52")
    assert hostile.harm_in(letter.reason) == []


def test_a_dead_letter_that_others_wrote_is_read_whatever_it_says():
    forged = [("penstock.partition", b"9" * 10_000), ("penstock.offset", "²".encode())]
    letter = read_letter(None, None, forged)
    assert (letter.coordinates.partition, letter.coordinates.offset) == (-1, -1)
