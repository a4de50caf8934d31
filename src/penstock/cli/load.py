"""Load an application by the name that the user gives.

``APP`` is a Python file, a directory with an ``app.py``, or a module; ``:variable`` behind any of
them names the application where there are several.
"""

import importlib
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.cli.mistakes import mistake, mistakes_in
from penstock.cli.screen.terminal import shortened
from penstock.connectors import Lookup
from penstock.core.app import App
from penstock.core.graph.graph import Graph
from penstock.core.hints import did_you_mean
from penstock.errors import ConfigurationError, DefinitionError

__all__ = ["AppTarget", "Application", "find_target", "load_application"]

_DEFAULT_FILE = "app.py"


@dataclass(frozen=True, slots=True)
class AppTarget:
    """A module to import, the directory it is imported from, and the application's variable."""

    module: str
    root: Path
    file: Path | None
    variable: str | None

    def __str__(self) -> str:
        """Return the name for messages."""
        return shortened(self.file) if self.file else self.module


@dataclass(frozen=True, slots=True)
class Application:
    """An application that was loaded. ``root`` is where other processes import it from."""

    graph: Graph
    root: Path
    reference: str
    lookups: dict[str, Lookup[Any]]
    """The look-ups that its module names."""


def load_application(reference: str) -> Application:
    """Import the application that a reference names.

    Raises ConfigurationError where there is none or more than one, and DefinitionError with every
    problem where its file does not import. What it prints meanwhile goes to standard error.
    """
    target = find_target(reference)
    if str(target.root) not in sys.path:
        sys.path.insert(0, str(target.root))
    # What the application prints is no part of a verb's answer: a drawing, JSON, reports.
    with redirect_stdout(sys.stderr):
        module = _imported(target)
    lookups = {name: value for name, value in vars(module).items() if isinstance(value, Lookup)}
    return Application(_chosen(module, target).graph, target.root, reference, lookups)


def find_target(reference: str) -> AppTarget:
    """Return what a reference stands for; ConfigurationError where there is no such thing."""
    name, variable = reference, None
    head, colon, tail = reference.rpartition(":")
    if colon and tail.isidentifier() and not Path(reference).exists():
        name, variable = head, tail
    path = Path(name)
    if path.is_dir():
        if not (path / _DEFAULT_FILE).is_file():
            raise _missing(name, f"the directory has no {_DEFAULT_FILE}", sorted(path.glob("*.py")))
        path /= _DEFAULT_FILE
    if path.is_file():
        return _file_target(path, variable)
    if path.suffix != ".py" and all(word.isidentifier() for word in name.split(".")):
        return AppTarget(name, Path.cwd(), None, variable)
    raise _missing(name, "there is no such file or directory", sorted(path.parent.glob("*.py")))


def _file_target(path: Path, variable: str | None) -> AppTarget:
    path = path.absolute()
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ConfigurationError(
            f"{path.name} cannot be imported as a Python module",
            code="app.not-python",
            hint="rename the file: letters, digits and '_', ending in .py",
        )
    names, root = [path.stem], path.parent
    # A file of a package is imported as such, so that its own imports work.
    while (root / "__init__.py").is_file():
        names, root = [root.name, *names], root.parent
    module = ".".join(names)
    if module in sys.stdlib_module_names:
        raise ConfigurationError(
            f"{path.name} has the name of a module of Python's standard library",
            code="app.not-python",
            hint="rename it, for example to app.py",
        )
    return AppTarget(module, root, path, variable)


def _missing(name: str, why: str, near: list[Path]) -> ConfigurationError:
    hint = "penstock init NAME makes a project"
    if near:
        hint = f"{did_you_mean(name, [shortened(path) for path in near])} ({hint})"
    return ConfigurationError(
        f"no application found at {name!r}: {why}", code="app.not-found", hint=hint
    )


def _imported(target: AppTarget) -> ModuleType:
    loaded = sys.modules.get(target.module)
    if loaded is not None and target.file and getattr(loaded, "__file__", "") != str(target.file):
        del sys.modules[target.module]
    try:
        return importlib.import_module(target.module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if target.file is not None:
            raise DefinitionError(mistakes_in(target.file, target.module, error)) from error
        if isinstance(error, ModuleNotFoundError) and error.name == target.module.split(".")[0]:
            here = sorted(target.root.glob("*.py"))
            raise _missing(target.module, f"no module {error.name!r} here", here) from error
        raise DefinitionError((mistake(error, target.root),)) from error


def _chosen(module: ModuleType, target: AppTarget) -> App:
    found = {name: value for name, value in vars(module).items() if isinstance(value, App)}
    if target.variable is not None:
        if target.variable in found:
            return found[target.variable]
        raise ConfigurationError(
            f"{target} has no application {target.variable!r}",
            code="app.not-found",
            hint=did_you_mean(target.variable, found),
        )
    if not found:
        raise ConfigurationError(
            f"{target} declares no application",
            code="app.none",
            hint='declare one: app = penstock.App("name")',
        )
    if len({id(app) for app in found.values()}) > 1:
        raise ConfigurationError(
            f"{target} declares {len(found)} applications: {', '.join(found)}",
            code="app.several",
            hint=f"choose one: {target}:{next(iter(found))}",
        )
    return next(iter(found.values()))
