import sys

import msgspec
import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.cli.main import main

APP = """
from penstock import App, State, on_error, record, retry
from penstock.aggregates import count as number_of
from penstock.windows import fixed
from penstock.connectors import keyboard

app = App("{name}")

@record(key="word")
class Word:
    word: str

@record(key="word")
class Reset:
    word: str

@record(key="word")
class Count:
    word: str
    count: int

words = app.stream("{name}.words", Word)
resets = app.stream("{name}.resets", Reset)
counts = app.table("{name}.counts", Count)
app.source("keys", keyboard(), into=words)

@app.service(reads=(words, resets), writes=counts)
def count(given: Word | Reset, total: State[int]) -> Count:
    total.set(0 if isinstance(given, Reset) else total.get(0) + 1)
    return Count(given.word, total.get(0))
"""


LIVE = """
FAILS = [1]

@record(key="word", time="at")
class Said:
    word: str
    at: int

said = app.stream("{name}.said", Said, partitions=1)
echoes = app.stream("{name}.echoes", Said, partitions=1)
windows = said.window(fixed("1s"), by="word").aggregate(n=number_of())
app.stream("{name}.panes", windows, on="services", partitions=1)

@app.service(reads=said, writes=echoes, errors=on_error(process=retry(3)))
async def echo(given: Said) -> Said:
    if given.at == 1000 and FAILS:
        FAILS.pop()
        raise OSError("away for a moment")
    return given
"""


@pytest.fixture
def name(topic):
    return topic.name("replay")


@pytest.fixture
def penstock(kafka, tmp_path, monkeypatch, capsys, name):
    """Give the command, connected to the test's broker, in a project with the application."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP", kafka.bootstrap)
    (tmp_path / "replay_app.py").write_text((APP + LIVE).format(name=name))
    path = list(sys.path)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    code, _, err = run("topics", "apply", "replay_app.py")
    assert code == 0, err
    yield run
    sys.path[:] = path


def send(kafka, topic: str, *words: str) -> None:
    with Producer(kafka) as producer:
        for word in words:
            producer.send(topic, key=word.encode(), value=msgspec.json.encode({"word": word}))


def latest(kafka, topic: str) -> dict[str, int]:
    values = [msgspec.json.decode(record.value or b"") for record in LogReader(kafka).read(topic)]
    return {value["word"]: value["count"] for value in values}


def test_a_service_runs_over_the_past_into_topics_of_its_own(penstock, kafka, name):
    send(kafka, f"{name}.words", "a", "a", "b", "c")
    with Producer(kafka) as producer:
        producer.send(f"{name}.words", key=b"x", value=b"broken")
    send(kafka, f"{name}.resets", "a")
    send(kafka, f"{name}.words", "a")
    code, out, err = penstock("replay", "replay_app.py", "--part", "count", "--as", "trial")
    assert code == 0, err
    assert out == f"{name}.counts.replay.trial\n"
    # Both inputs are taken in the order of their timestamps: the reset lies between the words.
    assert latest(kafka, f"{name}.counts.replay.trial") == {"a": 1, "b": 1, "c": 1}
    assert latest(kafka, f"{name}.counts") == {}
    assert "count: 7 records in, 6 out\n" in err
    assert f"1 dead letters in {name}.dead-letters.replay.trial" in err


def test_a_label_is_used_once(penstock, kafka, name):
    send(kafka, f"{name}.words", "a")
    words = ("replay", "replay_app.py", "--part", "count", "--as", "once", "--json")
    code, out, _ = penstock(*words)
    assert code == 0
    assert msgspec.json.decode(out)["counts"]["received"] == 1
    code, _, err = penstock(*words)
    assert code == 1
    assert "the label 'once' has been used" in err


def test_a_range_is_replayed_alone_with_empty_state(penstock, kafka, name):
    send(kafka, f"{name}.words", *["a"] * 5)
    words = ("replay", "replay_app.py", "--part", "count", "--json")
    _, out, _ = penstock(*words, "--from", "-2", "--as", "last")
    assert msgspec.json.decode(out)["counts"]["received"] == 2
    assert latest(kafka, f"{name}.counts.replay.last") == {"a": 2}
    _, out, _ = penstock(*words, "--to", "1h", "--as", "before")
    assert msgspec.json.decode(out)["counts"]["received"] == 0


def test_what_cannot_be_replayed_is_refused(penstock, name):
    code, _, err = penstock("replay", "replay_app.py", "--part", "keys", "--as", "x")
    assert code == 1
    assert f"its records are already on '{name}.words'" in err
    code, _, err = penstock("replay", "replay_app.py", "--part", "cuont", "--as", "x")
    assert code == 1
    assert "did you mean 'count'" in err
    code, _, err = penstock("replay", "replay_app.py", "--part", "count", "--as", "a b")
    assert code == 1
    assert "choose another label" in err


def test_async_services_retries_and_windows_run_over_the_past_too(penstock, kafka, name):
    times = (0, 1000, 2000, 300_000)
    with Producer(kafka) as producer:
        for at in times:
            value = msgspec.json.encode({"word": "a", "at": at})
            producer.send(f"{name}.said", key=b"a", value=value)
    words = ("replay", "replay_app.py", "--json", "--as", "again", "--part")
    code, out, err = penstock(*words, "echo")
    assert code == 0, err
    counts = msgspec.json.decode(out)["counts"]
    assert (counts["received"], counts["passed"], counts["dead_lettered"]) == (4, 4, 0)
    echoes = LogReader(kafka).read(f"{name}.echoes.replay.again")
    assert [msgspec.json.decode(found.value or b"")["at"] for found in echoes] == list(times)
    code, out, err = penstock(*words, f"{name}.panes.windows")
    assert code == 0, err
    assert msgspec.json.decode(out)["results"][0] == f"{name}.panes.replay.again"
    assert len(list(LogReader(kafka).read(f"{name}.panes.replay.again"))) >= 3
