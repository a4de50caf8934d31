from pathlib import Path

import pytest
from jgo.constants import MAVEN_CENTRAL_URL

from penstock.errors import ConfigurationError
from penstock.machine.java.mirror import Mirror, configured_mirror


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_MAVEN_MIRROR", raising=False)
    (tmp_path / ".m2").mkdir()
    return tmp_path


def write_settings(home: Path, mirrors: str) -> None:
    (home / ".m2" / "settings.xml").write_text(
        f'<settings xmlns="urn:settings"><mirrors>{mirrors}</mirrors></settings>'
    )


def mirror_of(repositories: str) -> str:
    return (
        f"<mirror><mirrorOf>{repositories}</mirrorOf><url>https://mirror.test/maven/</url></mirror>"
    )


def test_without_configuration_it_is_maven_central() -> None:
    assert configured_mirror().url == MAVEN_CENTRAL_URL.rstrip("/")


def test_the_environment_comes_before_maven_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(home, mirror_of("*"))
    assert configured_mirror().url == "https://mirror.test/maven"
    monkeypatch.setenv("PENSTOCK_MAVEN_MIRROR", "http://127.0.0.1:8081/")
    assert configured_mirror().url == "http://127.0.0.1:8081"


@pytest.mark.parametrize(
    ("repositories", "used"),
    [("central", True), ("external:*", True), ("*,!central", False), ("corporate", False)],
)
def test_only_a_mirror_of_central_in_maven_settings_counts(
    home: Path, repositories: str, used: bool
) -> None:
    write_settings(home, mirror_of(repositories))
    assert (configured_mirror().url == "https://mirror.test/maven") is used


def test_maven_settings_that_are_no_xml_are_ignored(home: Path) -> None:
    (home / ".m2" / "settings.xml").write_text("<settings")
    assert configured_mirror().url == MAVEN_CENTRAL_URL.rstrip("/")


def test_credentials_are_sent_and_never_shown() -> None:
    mirror = Mirror.parse("https://me:s%40cret@mirror.test/maven")
    assert mirror.authorization == "Basic bWU6c0BjcmV0"
    assert mirror.address("a/b.jar") == "https://mirror.test/maven/a/b.jar"
    assert "cret" not in repr(mirror)


@pytest.mark.parametrize("address", ["ftp://me:secret@mirror.test/", "mirror.test/maven", "https:"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Mirror.parse(address)
    assert caught.value.code == "jars.mirror"
    assert "secret" not in str(caught.value)
