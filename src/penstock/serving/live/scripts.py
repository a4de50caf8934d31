"""``/v1/client/``: the JavaScript client, as plain modules that a browser imports."""

from importlib.resources import files
from pathlib import Path

from penstock.serving.files.route import FileRoute
from penstock.serving.files.served import Files

__all__ = ["SCRIPTS", "script_route"]

SCRIPTS = "/v1/client/"
"""Where the modules are; ``live.js`` is what a page imports."""


def script_route() -> FileRoute:
    """Return the route to the modules: they come with the clients, and are files to a gateway."""
    directory = Path(str(files("penstock"))) / "client" / "web"
    return FileRoute(Files(directory), under=SCRIPTS)
