"""Give the documentation site the pages that are not in docs/, and turn the links that lead there.

A hook of MkDocs. The pages in docs/ link to files of the tree, as a code host needs it
(``../src/penstock/core/app.py``). The site has a page for each such file. It also has a page for
each public module, which mkdocstrings fills from docstrings.
"""

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")
FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
UNLISTED = "---\nsearch:\n  exclude: true\n---\n\n"
"""Front matter of a page that a search does not find."""

MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/decisions": "decisions/index.md",
}
"""Paths in the tree, and their pages in the site."""

MODULES = (
    "penstock",
    "state",
    "tables",
    "questions",
    "windows",
    "triggers",
    "aggregates",
    "lifecycles",
    "patterns",
    "live",
    "client",
    "jobs",
    "models",
    "connectors",
    "testing",
)
"""The public modules. Each has a page with all that it exports."""

DECLARED = {
    "penstock.core.graph.data": ("Stream", "Table", "Lake", "Archive"),
    "penstock.core.lifecycles.lifecycle": ("LifeCycle",),
    "penstock.core.patterns.pattern": ("Pattern",),
    "penstock.core.patterns.steps": ("Sequence",),
    "penstock.core.rollup.aggregation": ("Selection", "Windowed"),
}
"""What declarations return: nobody imports it, but everybody calls its methods."""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are not in docs/: whatever a page links to, and the API reference."""
    seen = {f"docs/{file.src_uri}" for file in files.documentation_pages()}
    waiting = sorted(seen | MOVED.keys())
    while waiting:
        path = waiting.pop()
        text = content(path)
        if uri_of(path) not in files.src_uris:
            files.append(File.generated(config, uri_of(path), content=text))
        found = {resolved(path, link[2]) for link in links(text)}
        waiting += sorted(each for each in found - seen if each and not each.endswith(".png"))
        seen |= found
    for name in MODULES:
        files.append(File.generated(config, f"api/{name}.md", content=reference(name)))
    declared = entries({module: list(names) for module, names in DECLARED.items()}, made=False)
    text = f"# What a declaration returns\n\n{''.join(declared)}"
    files.append(File.generated(config, "api/declared.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn each link to a file of the tree into a link to its page in the site."""
    uri = page.file.src_uri
    path = next((path for path, moved in MOVED.items() if moved == uri), f"docs/{uri}")
    path = uri.removeprefix("source/").removesuffix(".md") if uri.startswith("source/") else path

    def turned(link: re.Match[str]) -> str:
        goal = resolved(path, link[2])
        if not goal:
            return link[0]
        target = posixpath.relpath(uri_of(goal), posixpath.dirname(uri) or ".")
        return f"{link[1]}{target}{''.join(link[2].partition('#')[1:])}{link[3]}"

    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(turned, part) for part in parts)


def links(markdown: str) -> Iterator[re.Match[str]]:
    """Yield the links of a page, but not what looks like one in code."""
    for part in FENCED.split(markdown):
        if not part.startswith("```"):
            yield from LINK.finditer(part)


def resolved(path: str, target: str) -> str:
    """Return the path in the tree that a link leads to; empty where it stays on its page."""
    target = target.partition("#")[0]
    if not target or ":" in target:
        return ""
    folder = path if (ROOT / path).is_dir() else posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(folder, target))


def uri_of(path: str) -> str:
    """Return the page that a path of the tree has in the site."""
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"source/{path}.md"


def reference(name: str) -> str:
    """Return the page of a public module: the first words of its docstring, then all it exports."""
    package = ROOT / "src" / "penstock"
    place = package if name == "penstock" else package / name
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    exported = {
        node.module: [alias.name for alias in node.names]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
    }
    about = (ast.get_docstring(tree) or "").partition("\n\n==")[0]
    title = name if name == "penstock" else f"penstock.{name}"
    return f"# {title}\n\n{about}\n\n" + "".join(entries(exported))


def entries(exported: dict[str, list[str]], *, made: bool = True) -> Iterator[str]:
    """Yield what mkdocstrings needs to describe each name, given the modules that define them.

    ``made=False``: users never make one themselves, so the page does not say how.
    """
    options = "" if made else "    options: { merge_init_into_class: false }\n"
    pairs = [(name, module) for module, names in exported.items() for name in names]
    for name, module in sorted(pairs):
        yield f"::: {module}.{name}\n{options}\n"


def content(path: str) -> str:
    """Return the Markdown of a page: its own, or a view of a file or a folder of the tree."""
    place = ROOT / path
    if path == "docs/decisions":
        pages = sorted(place.glob("*.md"))
        titles = [page.read_text(encoding="utf-8").partition("\n")[0][2:] for page in pages]
        lines = [f"- [{title}]({page.name})\n" for page, title in zip(pages, titles, strict=True)]
        return "# Decisions\n\nChoices that are hard to undo, each on half a page.\n\n" + "".join(
            lines
        )
    if place.is_dir():
        return f"{UNLISTED}# {path}\n\n" + "".join(listing(place))
    text = place.read_text(encoding="utf-8")
    if place.suffix == ".md":
        return text
    language = {".py": "python", ".toml": "toml", ".sh": "sh"}.get(place.suffix, "text")
    return f"{UNLISTED}# {path}\n\n`````{language}\n{text}\n`````\n"


def listing(folder: Path) -> Iterator[str]:
    """Yield a line for each module of a folder: its name, and the first line of its docstring."""
    for module in sorted(folder.glob("*.py")):
        says = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
        yield f"- `{module.name}`: {says.partition(chr(10))[0]}\n"
