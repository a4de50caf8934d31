"""Starts a script again with the Python of `make setup`, where another one has started it.

A script of the project runs this file first, before it imports what only that Python has:
``python bench/nexmark/run.py`` is then the same from every shell.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

OWN = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"


def use_own_python() -> None:
    """Return if this is the project's Python; else become it, with the same arguments."""
    if find_spec("penstock") is not None:
        return
    if Path(sys.prefix) == OWN.parents[1] or not OWN.exists():
        sys.exit("penstock is not installed; `make setup` in the project's folder does it")
    os.execv(OWN, [str(OWN), *sys.orig_argv[1:]])  # noqa: S606 - the same program, no shell


use_own_python()
