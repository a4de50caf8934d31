import sys
from pathlib import Path

import pytest

from penstock.machine.places import Places, cache_dir


def test_all_places_of_a_project_lie_under_its_home(tmp_path: Path) -> None:
    places = Places(tmp_path)
    lying = {places.broker, places.checkpoints, places.lake, places.logs, places.state}
    assert {path.parent for path in lying} == {tmp_path}
    assert len(lying) == 5


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Places(Path(".penstock")).home == tmp_path / ".penstock"


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [
        ("/own", "/shared", "/own"),
        ("", "/shared", "/shared/penstock"),
        ("", "relative", "/home/me/.cache/penstock"),
        ("", "", "/home/me/.cache/penstock"),
    ],
)
def test_the_cache_is_found_by_the_environment(
    own: str, shared: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", own)
    monkeypatch.setenv("XDG_CACHE_HOME", shared)
    monkeypatch.setenv("HOME", "/home/me")
    # Where caches belong without a variable is the system's own rule.
    if own or sys.platform == "linux":
        assert cache_dir() == Path(expected)


def test_without_a_home_the_cache_is_below_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_: int) -> None:
        raise KeyError("no such user")

    for name in ("PENSTOCK_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.chdir(tmp_path)
    assert cache_dir() == tmp_path / ".cache" / "penstock"
