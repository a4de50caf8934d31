"""One file for a bug report: complete enough to help, and without secrets."""

import zipfile

import msgspec
import pytest

from penstock.cli.machine.bundle import Cleaner

SECRETS = {
    "PENSTOCK_KAFKA_SASL_PASSWORD": "correct-horse-battery",
    "PENSTOCK_SERVING_SECRET": 'quoted"and\\escaped-staple',
    "STORE_ACCESS_KEY": "of-the-environment-9000",
}
APP = """
from penstock import App, record

app = App("plant")

@record(key="word")
class Word:
    word: str

words = app.stream("words", Word)
kept = app.stream("kept", Word)

@app.service(reads=words, writes=kept)
def keep(word: Word) -> Word:
    return word
"""


@pytest.fixture
def bundle(penstock, project, monkeypatch):
    """Return the members of a bundle of a project that has secrets everywhere."""
    for name, text in SECRETS.items():
        monkeypatch.setenv(name, text)
    (project / "app.py").write_text(APP)
    (project / "penstock.toml").write_text(
        '[spark.options]\n"spark.a.secret.key" = "of-the-file-77"\n'
    )
    (project / "penstock.toml").chmod(0o600)
    logs = project / ".penstock" / "logs"
    logs.mkdir(parents=True)
    plain = " ".join(SECRETS.values())
    (logs / "keep.log").write_text(f"a useful line\nlogging in as {plain}\npassword=another-one\n")
    answer = penstock("bundle", "--output", "report.zip")
    assert answer.code == 0, answer.err
    assert (project / "report.zip").stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(project / "report.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_it_has_what_helps(bundle):
    assert bundle.keys() == {
        "about.json",
        "doctor.json",
        "settings.json",
        "graph.txt",
        "status.json",
        "logs/keep.log",
    }
    assert "keep" in bundle["graph.txt"]
    assert "a useful line" in bundle["logs/keep.log"]
    settings = msgspec.json.decode(bundle["settings.json"])
    assert settings["kafka.sasl_password"]["value"] == "***"
    assert settings["kafka.sasl_password"]["from"] == "PENSTOCK_KAFKA_SASL_PASSWORD"


def test_no_secret_is_in_it_wherever_it_stood(bundle):
    everything = "\n".join(bundle.values())
    for secret in (*SECRETS.values(), "another-one", "of-the-file-77", "staple"):
        assert secret not in everything
    assert "correct-horse" not in everything


def test_a_secret_is_found_as_json_writes_it_and_inside_another():
    clean = Cleaner({'a"b\\c', "long-secret", "long-secret-and-more"})
    assert clean(r'{"x": "a\"b\\c"} long-secret-and-more long-secret') == '{"x": "***"} *** ***'


def test_an_existing_file_is_not_overwritten(penstock, project):
    (project / "app.py").write_text(APP)
    (project / "report.zip").write_text("mine")
    answer = penstock("bundle", "--output", "report.zip")
    assert answer.code == 1
    assert "bundle.write" in answer.err
    assert (project / "report.zip").read_text() == "mine"


def test_a_project_whose_application_is_broken_has_a_bundle_that_says_so(penstock, project):
    (project / "app.py").write_text("raise ValueError('broken on purpose')\n")
    answer = penstock("bundle", "--output", "report.zip")
    assert answer.code == 0, answer.err
    with zipfile.ZipFile(project / "report.zip") as archive:
        assert "broken on purpose" in archive.read("graph.txt").decode()
