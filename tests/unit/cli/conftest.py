import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.cli.main import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give an empty directory to stand in; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in __import__("os").environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    modules, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def penstock(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Give the command itself, run in this process."""

    def run(*words: str) -> Answer:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run
