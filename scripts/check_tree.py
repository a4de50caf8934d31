"""Check what no linter does: the size of rooms, modules and functions, names, circles of imports.

A module past 400 lines says why ("Long because ...") in its docstring; past 600 it is split.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SHORT, LONG = 400, 600
SCREEN = 60
ROOM = 16
VAGUE = ("Manager", "Helper", "Helpers", "Utils", "Util", "Base", "Info")
ROOTS = ("src", "apps", "bench", "scripts", "tests")


def complaints(path: Path) -> Iterator[str]:
    """Yield what is wrong with one module."""
    text = path.read_text(encoding="utf-8")
    count = text.count("\n")
    tree = ast.parse(text, str(path))
    if count > LONG:
        yield f"{path}: {count} lines; split it ({LONG} at most)"
    elif count > SHORT and "Long because" not in (ast.get_docstring(tree) or ""):
        yield f'{path}: {count} lines; split it, or say "Long because ..." in its docstring'
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > SCREEN:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines; a screen is {SCREEN}"
        elif isinstance(node, ast.ClassDef) and node.name.endswith(VAGUE):
            yield f"{path}:{node.lineno}: {node.name} says nothing; name what it is"


def crowded(root: Path) -> Iterator[str]:
    """Yield the folders that have more modules than a reader can keep in mind."""
    for folder in sorted({path.parent for path in root.rglob("*.py")}):
        count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        if count > ROOM:
            yield f"{folder}: {count} modules; make rooms of it ({ROOM} at most)"


def circles(root: Path) -> Iterator[str]:
    """Yield a circle of imports; those in functions and for types alone count as well."""
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in root.rglob("*.py")
    }
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                inner = (f"{node.module}.{each.name}" for each in node.names)
                found = {each if each in modules else node.module or "" for each in inner}
                graph[name] |= found & modules.keys()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"{root}: modules import one another: {' <- '.join(error.args[1])}"


def main() -> int:
    """Print every complaint; return 1 where there is one."""
    modules = sorted(path for root in ROOTS for path in Path(root).rglob("*.py"))
    found = [text for path in modules for text in complaints(path)]
    found += crowded(Path("src"))
    found += circles(Path("src"))
    for text in found:
        print(text)
    print(f"{len(modules)} modules, {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
