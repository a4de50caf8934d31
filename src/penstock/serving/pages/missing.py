"""What is wrong with the directory of a gateway's pages; known before anything starts."""

from collections.abc import Iterator
from pathlib import Path

from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.errors import Problem
from penstock.serving.files.served import INDEX, MOST_FILE_BYTES, Files

__all__ = ["directory_problem", "page_problems"]


def page_problems(graph: Graph) -> Iterator[Problem]:
    """Yield what is wrong with the pages of the gateways of an application."""
    for part in graph.parts:
        if not isinstance(part, Gateway) or part.pages_path is None:
            continue
        problem = directory_problem(part)
        if problem is not None:
            yield problem
            continue
        directory = Path(part.pages_path)
        for name in Files(directory).names():
            if (directory / name).stat().st_size > MOST_FILE_BYTES:
                most = f"{MOST_FILE_BYTES >> 20} MiB"
                text = f"gateway {part.name!r}: the page {name} has more than {most}"
                hint = "large files are for a server of files, or an object store"
                yield Problem("pages.too-large", text, hint, part.place)


def directory_problem(gateway: Gateway) -> Problem | None:
    """Return why the directory cannot be served; None: it can."""
    directory = Path(gateway.pages_path or "")
    if not directory.is_dir():
        text = f"gateway {gateway.name!r}: the directory of its pages does not exist: {directory}"
        hint = f"make the directory with an {INDEX}; its path begins where the gateway is declared"
        return Problem("pages.missing", text, hint, gateway.place)
    if not (directory / INDEX).is_file():
        text = f"gateway {gateway.name!r}: its pages have no {INDEX}: {directory}"
        return Problem("pages.no-index", text, f"write {directory / INDEX}", gateway.place)
    return None
