"""Find the problems of an application file that cannot be imported, without a traceback.

Python stops at the first statement that raises. Here the file is run again, statement by
statement: what one raises is kept as a problem, and the others go on. A statement that fails only
because an earlier one left no name behind is not a problem of its own.
"""

import __future__

import ast
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from penstock.core.app import App
from penstock.core.hints import did_you_mean
from penstock.core.place import is_penstocks
from penstock.core.printable import printable
from penstock.core.rules.check import check
from penstock.errors import DefinitionError, Place, Problem
from penstock.machine.packages import INSTALL_SPARK, missing_spark_packages

__all__ = ["mistake", "mistakes_in"]

_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_UNEXPECTED = re.compile(r"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_POSITIONAL = re.compile(
    r"(?:(\w+)\.)?(\w+)\(\) "
    r"(?:takes (?:from )?\d.* positional arguments? but |missing \d+ required )"
)
_OF_APP = re.compile(rf"\b(?:{'|'.join(each.__name__ for each in App.__mro__[1:-1])})\.(?=\w+\()")
"""The classes that the methods of an application come from: who calls them knows ``App``."""
_BRACKETS = re.compile(r"Too (?:few|many) arguments for <class 'penstock\.[\w.]+\.(\w+)'>")
_NO_SPARK = "[SESSION_OR_CONTEXT_NOT_EXISTS]"
_LATER = (
    "no Spark runs while an application is loaded: create columns inside the function, "
    "and give the type of a UDF as DoubleType(), not as text"
)
_WRITTEN = {
    "record": 'with parentheses: @record(key="...")',
    "service": "@app.service(reads=...) above it, or app.service(reads=...)(it)",
    "pipeline": "@app.pipeline(reads=..., writes=...) above it",
    "job": "@app.job(reads=..., writes=..., every=...) above it",
    "State": "State[int], for example",
    "ListState": "ListState[float], for example",
    "MapState": "MapState[str, int], for example: the types of its names and of its values",
}


def mistakes_in(file: Path, module: str, first: BaseException) -> tuple[Problem, ...]:
    """Return every problem of a file whose import raised ``first``, in order of place."""
    root = file.parent
    if isinstance(first, SyntaxError):
        return (mistake(first, root),)
    tree = ast.parse(file.read_bytes(), filename=str(file))
    namespace = _fresh(file, module)
    found = _run(tree, namespace, file) or [mistake(first, root)]
    for app in {
        id(value): value for value in namespace.values() if isinstance(value, App)
    }.values():
        found += check(app.graph)
    return tuple(sorted(found, key=_order))


def mistake(error: BaseException, root: Path, *, names: Iterable[str] = ()) -> Problem:
    """Return an exception as a problem at the last line of the user's own code."""
    if isinstance(error, SyntaxError):
        line = Place(error.filename or "?", error.lineno or 1)
        return Problem("app.syntax", f"syntax error: {error.msg}", "", line)
    kind = type(error).__name__
    place = _place(error, root)
    if isinstance(error, ModuleNotFoundError):
        text = f"no module named {error.name!r}"
        top = (error.name or "").partition(".")[0]
        hint = (
            INSTALL_SPARK if top in missing_spark_packages() else "install it, or correct the name"
        )
        return Problem("app.import", text, hint, place)
    if isinstance(error, SystemExit):
        return Problem("app.raised", "importing it ends Python", "declare only", place)
    if isinstance(error, ImportError) and (gone := _NOT_THERE.match(_said(error))):
        hint = did_you_mean(gone[1], _public(sys.modules.get(gone[2])))
        return Problem("app.import", f"{gone[2]} has no {gone[1]!r}", hint, place)
    # In one line: what it says may come from anywhere, and must not look like another problem.
    said = _OF_APP.sub("App.", _said(error)) if isinstance(error, TypeError) else _said(error)
    text = printable(f"{kind}: {said}" if said else kind)
    return Problem("app.raised", text, _hint(error, names), place)


def _said(error: BaseException) -> str:
    """Return the text of an exception; even that is the user's code."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - its kind and place are enough
        return ""


def _fresh(file: Path, name: str) -> dict[str, Any]:
    """Return the namespace of a new module that stands where the failed one stood."""
    module = ModuleType(name)
    module.__file__ = str(file)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    return vars(module)


def _run(tree: ast.Module, namespace: dict[str, Any], file: Path) -> list[Problem]:
    found: list[Problem] = []
    lost: set[str] = set()
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(__future__, alias.name).compiler_flag
        code = compile(ast.Module([statement], []), str(file), "exec", flags, dont_inherit=True)
        try:
            exec(code, namespace)  # noqa: S102 - it is the user's own file, asked for by name
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is reported
            if not (isinstance(error, NameError) and error.name in lost):
                found += (
                    error.problems
                    if isinstance(error, DefinitionError)
                    else [mistake(error, file.parent, names={*namespace, *lost})]
                )
            lost |= _bound(statement)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement would have left behind."""
    names = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names = {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        names = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return names


def _place(error: BaseException, root: Path) -> Place | None:
    """Return the deepest line of the user's own code, else of anything but Penstock."""
    lines: list[tuple[FrameType, int]] = []
    trace = error.__traceback__
    while trace is not None:
        lines.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    places = [
        Place(frame.f_code.co_filename, line)
        for frame, line in reversed(lines)
        if not (is_penstocks(file := frame.f_code.co_filename) or file.startswith("<"))
    ]
    installed = ("site-packages", "dist-packages")
    own = (
        place
        for place in places
        if Path(place.file).is_relative_to(root)
        and not any(word in Path(place.file).parts for word in installed)
    )
    return next(own, places[0] if places else None)


def _wants_spark(error: BaseException) -> bool:
    """Return whether PySpark raised it for want of a session: with its code, or as an assertion."""
    if not isinstance(error, AssertionError):
        return _NO_SPARK in _said(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals["__name__"].startswith("pyspark.")


def _hint(error: BaseException, names: Iterable[str]) -> str:
    if _wants_spark(error):
        return _LATER
    if isinstance(error, NameError) and error.name:
        return did_you_mean(error.name, [name for name in names if not name.startswith("_")])
    if isinstance(error, AttributeError) and error.name:
        return did_you_mean(error.name, _public(error.obj))
    return _call_hint(_OF_APP.sub("App.", _said(error))) if isinstance(error, TypeError) else ""


def _call_hint(text: str) -> str:
    """Return how something of Penstock is called, or written in an annotation."""
    if brackets := _BRACKETS.search(text):
        return _WRITTEN.get(brackets[1], "")
    wrong = _UNEXPECTED.search(text) or _POSITIONAL.search(text)
    if wrong is None:
        return ""
    owner, function, *argument = wrong.groups()
    if function == "__init__":
        return 'name it: App("orders")' if owner == "App" else ""
    scope: Any = App if owner == "App" else __import__("penstock")
    called = getattr(scope, function, None)
    if not callable(called):
        return ""
    parameters = [name for name in inspect.signature(called).parameters if name != "self"]
    if argument:
        return did_you_mean(argument[0], parameters)
    named = f"name its arguments: {function}({', '.join(f'{name}=...' for name in parameters)})"
    return _WRITTEN.get(function, named)


def _public(thing: object) -> list[str]:
    return list(getattr(thing, "__all__", [])) or [
        name for name in dir(thing) if not name.startswith("_")
    ]


def _order(problem: Problem) -> tuple[str, int]:
    return (problem.place.file, problem.place.line) if problem.place else ("", 0)
