"""The room of pages: the files of the application under ``/``."""

from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.serving.files.route import FileRoute
from penstock.serving.files.served import Files
from penstock.serving.pages.missing import directory_problem
from penstock.serving.room import Building, Room

__all__ = ["open_pages"]

_API = "/v1/"


class _Pages(Room):
    def __init__(self, directory: Path) -> None:
        self._route = FileRoute(
            Files(directory), wants=lambda name: not f"/{name}/".startswith(_API)
        )
        self.routes = [self._route]

    def is_public(self, path: str) -> bool:
        """Return True for pages: a browser has no token before it has a page."""
        return self._route.has(path)


def open_pages(building: Building) -> Room | None:
    """Open the room; ConfigurationError ``pages.missing`` where the directory is not there."""
    directory = building.gateway.pages_path
    if directory is None:
        return None
    problem = directory_problem(building.gateway)
    if problem is not None:
        raise ConfigurationError(problem.message, code=problem.code, hint=problem.hint)
    return _Pages(Path(directory))
