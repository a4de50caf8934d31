"""The documentation is true: its Python runs, its links lead somewhere, its commands exist."""

import ast
import doctest
import importlib.util
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import VERBS, make_parser
from penstock.core.rules.check import check
from penstock.core.settings.keys import known_keys, shown
from penstock.core.status.exposition import CATALOGUE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "apps").rglob("*.md")]
    if path.is_file()
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
WORD_COUNT = ROOT / "apps" / "wordcount" / "app.py"


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each fenced block of a language."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found[1] == language:
            yield text.count("\n", 0, found.start(2)), found[2]


def run_page(page: Path, module: types.ModuleType) -> int:
    """Run all Python of a page in one module; return how many claims were compared."""
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    for line, block in blocks(page, "python"):
        if block.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block, {}, page.name, str(page), line)
            test.globs = module.__dict__
            complaints: list[str] = []
            runner.run(test, out=complaints.append, clear_globs=False)
            assert not complaints, "".join(complaints)
        else:
            tree = ast.increment_lineno(ast.parse(block), line)
            exec(compile(tree, str(page), "exec"), module.__dict__)  # noqa: S102 - that is the point
    return runner.tries


@pytest.fixture
def module(request):
    created = types.ModuleType(f"docs_{request.node.name}")
    created.__dict__["__file__"] = str(WORD_COUNT)
    sys.modules[created.__name__] = created
    yield created
    del sys.modules[created.__name__]


def test_the_tutorial_runs_and_gives_what_it_says(module):
    assert run_page(DOCS / "tutorial.md", module) > 10


def test_the_tutorial_builds_the_very_application_of_the_tree(module):
    run_page(DOCS / "tutorial.md", module)
    spec = importlib.util.spec_from_file_location("docs_wordcount_app", WORD_COUNT)
    shipped = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = shipped
    spec.loader.exec_module(shipped)
    built, expected = module.app.graph, shipped.app.graph
    assert {data.name: data for data in built.data} == {data.name: data for data in expected.data}
    assert {part.name: part for part in built.parts} == {part.name: part for part in expected.parts}


def test_the_application_on_the_front_page_runs_and_has_no_problems(module):
    run_page(ROOT / "README.md", module)
    assert check(module.app.graph) == []


@pytest.mark.parametrize(
    "page",
    [
        DOCS / f"{page}.md"
        for page in (
            "actors",
            "aggregates",
            "coming-from/faust-and-quix",
            "coming-from/flink",
            "coming-from/kafka-streams",
            "coming-from/pyspark",
            "connectors",
            "event-time",
            "expressions",
            "history",
            "http",
            "javascript",
            "joins",
            "kafka",
            "lake",
            "life-cycles",
            "lookups",
            "mqtt",
            "panes",
            "patterns",
            "postgres",
            "questions",
            "records",
            "redis",
            "services",
            "state",
            "syslog",
            "testing",
            "timers",
            "windows",
        )
    ],
    ids=lambda page: page.name,
)
def test_the_python_of_other_pages_runs_and_gives_what_they_say(page, module):
    assert run_page(page, module) > 0


def test_the_application_of_the_guide_to_pipelines_loads_where_no_spark_runs(tmp_path):
    pages = (DOCS / "pipelines.md", DOCS / "pipeline-recipes.md")
    found = [text for page in pages for _, text in blocks(page, "python")]
    code = [text for text in found if text[:3] != ">>>"]
    (tmp_path / "shop.py").write_text("\n".join(code))
    command = [sys.executable, "-m", "penstock.cli", "check", "shop.py"]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("ok: shop has ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_of_the_tree(page):
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    gone = [
        target
        for target in targets
        if not target.startswith("#") and not (page.parent / target.partition("#")[0]).exists()
    ]
    assert gone == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_into_a_page_leads_to_a_heading_of_it(page):
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    parts = [target.partition("#") for target in targets]
    gone = [
        f"{path}#{anchor}"
        for path, _, anchor in parts
        if anchor and anchor not in headings(page.parent / path if path else page)
    ]
    assert gone == []


def test_configuration_md_tells_of_every_setting_with_its_default_and_of_no_other():
    text = (DOCS / "configuration.md").read_text()
    told = dict(re.findall(r"^\| `([a-z_.]+)` \| (?:`(.*?)`)? ?\| [\w`]", text, re.MULTILINE))
    empty = ("", {})
    defaults = {key.name: shown(key.default) for key in known_keys().values()}
    assert told == {name: "" if value in empty else str(value) for name, value in defaults.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_the_marks_of_an_unsolved_conflict(page):
    marks = re.compile(r"^(<{7} .*|={7}|>{7} .*)$", re.MULTILINE)
    assert marks.findall(page.read_text()) == []


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for language in ("console", "sh"):
            for line, block in blocks(page, language):
                for number, text in enumerate(block.splitlines(), start=line + 1):
                    command = text.removeprefix("$ ").partition(" #")[0].strip()
                    if command.startswith("penstock "):
                        yield f"{page.relative_to(ROOT)}:{number}", command


@pytest.mark.parametrize(("place", "command"), list(commands()))
def test_every_command_of_the_documentation_exists(place, command):
    words = shlex.split(command.removesuffix("&").partition("|")[0])[1:]
    assert words[0] in VERBS
    assert make_parser().parse_args(words) is not None


def test_operations_md_tells_of_every_metric_and_of_no_other():
    told = re.findall(
        r"^\| `penstock_(\w+)` \|", (DOCS / "operations.md").read_text(), re.MULTILINE
    )
    assert sorted(told) == sorted(CATALOGUE)


def proofs() -> list[str]:
    """Return the tests that the guarantees name: ``tests/path.py::test_name``."""
    return re.findall(r"`(tests/[\w/.]+\.py::\w+)`", (DOCS / "guarantees.md").read_text())


def test_every_promise_names_at_least_one_test():
    rows = re.findall(r"^\| (?!promise|-)(.+?) \| (.+) \|$", _guarantees(), re.MULTILINE)
    assert len(rows) > 20
    assert [promise for promise, proof in rows if "::test_" not in proof] == []


def _guarantees() -> str:
    return (DOCS / "guarantees.md").read_text()


@pytest.mark.parametrize("proof", sorted(set(proofs())))
def test_the_test_that_proves_a_promise_exists(proof):
    path, _, name = proof.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    functions = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in functions


def test_the_glossary_is_sorted_and_says_each_word_once():
    words = re.findall(r"^\*\*(.+?)\*\*", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert len(words) > 20
    assert words == sorted(set(words), key=str.lower)


def test_architecture_md_names_every_room_and_files_that_it_has():
    text = (DOCS / "architecture.md").read_text()
    rows = re.findall(r"^\| \[`([\w/]+)`\]\(\.\./src/penstock/([\w/]+)\) (.+)$", text, re.MULTILINE)
    package = ROOT / "src" / "penstock"
    rooms = {
        folder.parent.relative_to(package).as_posix()
        for folder in package.rglob("__init__.py")
        if folder.parent != package and any(p != folder for p in folder.parent.glob("*.py"))
    }
    named = [name for name, _, _ in rows]
    assert sorted(named) == sorted({*rooms, "console"})
    for name, path, rest in rows:
        assert name == path
        for file in re.findall(r"`([\w/]+\.(?:py|js))`", rest):
            assert (package / path / file).is_file(), f"{name}: {file}"


def test_decisions_are_numbered_each_once_and_have_their_three_parts():
    pages = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == sorted(set(numbers))
    for page in pages:
        titles = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
        assert titles == ["Why", "Decided", "Price"], page.name
