"""Hostile keys, values, headers, groups and reasons on a real log, through the verbs that show them."""

import io
import runpy
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import confluent_kafka
import msgspec
import pytest

from penstock.backbone.log.producer import Producer
from penstock.cli.main import main
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.errors import UserCodeError

hostile = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "hostile.py")))
EVIL = hostile.WHOLE

APP = """
from penstock import App, record

app = App("{name}")

@record(key="word")
class Word:
    word: str

words = app.stream("{name}", Word, partitions=1)
"""


@pytest.fixture
def penstock(kafka, tmp_path, monkeypatch):
    """Give the command on a terminal that keeps what it was sent."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap,
        "TERM": "dumb",
        "NO_COLOR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    path = list(sys.path)

    def run(*words: str) -> str:
        out, err = hostile.Tty(), hostile.Tty()
        with monkeypatch.context() as patched:
            patched.setattr("sys.stdout", out)
            patched.setattr("sys.stderr", err)
            patched.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(EVIL.encode())))
            main(words)
        return out.getvalue() + err.getvalue()

    yield run
    sys.path[:] = path


def test_what_is_on_the_log_does_not_control_the_terminal(penstock, kafka, topic, tmp_path):
    name = topic.name("app")
    (tmp_path / "hostile_words.py").write_text(APP.format(name=name))
    penstock("topics", "apply", "hostile_words.py")
    error = UserCodeError(f"ValueError: {EVIL}", topic=name, partition=0, offset=0)
    place = Coordinates(name, 0, 0)
    headers = dead_letter_headers(error, place, part="count", at=datetime.now(UTC))
    fields = msgspec.json.encode({EVIL: EVIL, "word": EVIL, "offset": 999})
    with Producer(kafka) as producer:
        for value in (EVIL.encode(), fields, hostile.ENDLESS.encode()):
            for target in (name, f"{name}.dead-letters"):
                own = [*headers, (EVIL, EVIL.encode())]
                producer.send(target, key=EVIL.encode(), value=value, headers=own)
    group = "evil\x1b[2J\u202e\nFORGED"  # short: a long one is folded
    options = {"group.id": group, "enable.auto.commit": False}
    reader = confluent_kafka.Consumer(kafka.client_config() | options)
    reader.commit(offsets=[confluent_kafka.TopicPartition(name, 0, 1)], asynchronous=False)
    reader.close()
    shown = {
        words: penstock(*words)
        for words in (
            ("topics", "tail", name, "--headers"),
            ("topics", "tail", name, "--headers", "--app", "hostile_words.py"),
            ("topics", "tail", name, "--raw"),
            ("topics", "describe", name),
            ("topics", "list"),
            ("topics", "produce", name, "--app", "hostile_words.py"),
            ("dead-letters", "hostile_words.py"),
            ("dead-letters", "hostile_words.py", "--raw"),
            ("groups",),
            ("groups", group),
        )
    }
    assert {" ".join(words): hostile.harm_in(text) for words, text in shown.items()} == {
        " ".join(words): [] for words in shown
    }
    for words in (
        ("topics", "tail", name, "--json"),
        ("dead-letters", "hostile_words.py", "--json"),
    ):
        # Data, whole and unbounded, in which nothing acts.
        text = penstock(*words)
        assert [harm for harm in hostile.harm_in(text) if "a line of" not in harm] == []
        assert EVIL in {msgspec.json.decode(line)["key"] for line in text.splitlines()}
    for words, text in shown.items():
        if words not in {("topics", "list"), ("topics", "describe", name)}:
            assert "evil" in text, words
