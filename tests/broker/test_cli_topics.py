import io
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime

import msgspec
import pytest

from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer
from penstock.backbone.topics.topics import Topics
from penstock.cli.main import main
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.errors import DataError

APP = """
from penstock import App, record

app = App("{name}")

@record(key="word")
class Word:
    word: str
    count: int = 1

words = app.stream("{name}", Word, partitions=1)
"""


@pytest.fixture
def penstock(kafka, tmp_path, monkeypatch, capsysbinary):
    """Give the command, connected to the test's broker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP", kafka.bootstrap)
    path = list(sys.path)

    def run(*words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        captured = capsysbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    yield run
    sys.path[:] = path


@pytest.fixture
def words(kafka, topic):
    """Give a topic with ten records of one partition, the last in a transaction of no one."""
    name = topic("words", partitions=1)
    with Producer(kafka) as producer:
        for number in range(10):
            value = msgspec.json.encode({"word": f"w{number % 3}", "count": number})
            producer.send(name, key=f"w{number % 3}".encode(), value=value)
    return name


def offsets(out: str) -> list[int]:
    return [msgspec.json.decode(line)["offset"] for line in out.splitlines()]


def test_list_and_describe_show_topics_as_they_are(penstock, words):
    code, out, _ = penstock("topics", "list")
    assert code == 0
    assert f"{words}\t1\t1\t10\t7d\tno limit\tno\n" in out
    _, out, _ = penstock("topics", "describe", words, "--json")
    found = msgspec.json.decode(out)
    assert found["by_partition"] == [{"partition": 0, "first": 0, "next": 10, "held": 10}]
    assert found["config"]["retention.ms"] == "604800000"
    _, out, _ = penstock("topics", "describe", words)
    assert out.startswith(f"{words}: 1 partitions, 1 replicas\n")


def test_a_topic_that_is_not_there_is_an_error_with_the_nearest(penstock, words):
    for verb in (("describe",), ("tail",), ("produce",)):
        code, out, err = penstock("topics", *verb, f"{words}x")
        assert (code, out) == (1, "")
        assert f"did you mean {words!r}?" in err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--from", "earliest"], range(10)),
        (["--from", "7"], [7, 8, 9]),
        (["--from", "-2"], [8, 9]),
        (["--from", "latest"], []),
        (["--from", "1h"], range(10)),
        (["--from", "2020-01-01T00:00:00Z", "--limit", "3"], [0, 1, 2]),
        (["--from", "earliest", "--key", "w1"], [1, 4, 7]),
        (["--from", "earliest", "--where", "count>=5", "--where", "word=w0"], [6, 9]),
        (["--from", "earliest", "--grep", '"count":[12]}'], [1, 2]),
        (["--from", "earliest", "--partition", "0", "--limit", "1"], [0]),
        (["-n", "2"], [8, 9]),
        (["-n", "100"], range(10)),
    ],
)
def test_tail_starts_anywhere_and_filters(penstock, words, flags, expected):
    code, out, _ = penstock("topics", "tail", words, "--json", *flags)
    assert code == 0
    assert offsets(out) == list(expected)


def test_tail_writes_lines_and_raw_values(penstock, words):
    _, out, _ = penstock("topics", "tail", words, "--from", "9")
    assert out.split("\t")[:2] == ["0", "9"]
    assert out.endswith('\tw0\t{"word":"w0","count":9}\n')
    _, out, _ = penstock("topics", "tail", words, "--from", "9", "--raw")
    assert out == '{"word":"w0","count":9}\n'


def test_dead_letters_are_listed_with_reason_place_and_bytes(penstock, kafka, topic, tmp_path):
    name = topic.name("app")
    (tmp_path / "app.py").write_text(APP.format(name=name))
    assert "no dead letters" in penstock("dead-letters", ".")[2]
    assert penstock("topics", "apply", ".")[0] == 0
    with Producer(kafka) as producer:
        for offset, (part, value) in enumerate([("a", b"{"), ("b", b"\xff"), ("a", b'{"n":1}')]):
            headers = dead_letter_headers(
                DataError("not JSON", code="data.not-json"),
                Coordinates(name, 0, offset),
                part=part,
                at=datetime(2026, 1, 1, tzinfo=UTC),
            )
            headers.append(("own", b"1"))
            producer.send(f"{name}.dead-letters", key=b"k", value=value, headers=headers)
    _, out, _ = penstock("dead-letters", ".", "--json")
    letters = [msgspec.json.decode(line) for line in out.splitlines()]
    assert [(each["part"], each["offset"]) for each in letters] == [("a", 0), ("b", 1), ("a", 2)]
    assert letters[1] == {
        "at": "2026-01-01T00:00:00+00:00", "part": "b",
        "topic": name, "partition": 0, "offset": 1,
        "code": "data.not-json", "reason": "not JSON",
        "key": "k", "value": "base64:/w==", "headers": {"own": "1"},
    }  # fmt: skip
    _, out, _ = penstock("dead-letters", ".", "--part", "a", "-n", "1")
    assert out.splitlines()[1].split("\t")[1:3] == ["a", f"{name}[0]@2"]
    _, out, _ = penstock("dead-letters", ".", "--part", "a", "--raw")
    assert out == '{\n{"n":1}\n'
    assert penstock("dead-letters", ".", "--code", "user.raised")[1] == ""


def test_a_partition_that_is_not_there_is_an_error(penstock, words):
    code, _, err = penstock("topics", "tail", words, "--partition", "5")
    assert code == 1
    assert "has no partition 5" in err


def test_an_application_is_applied_once_and_gives_types_to_tail_and_produce(
    penstock, topic, tmp_path, kafka
):
    name = topic.name("app")
    module = "types_of_tail"
    (tmp_path / f"{module}.py").write_text(APP.format(name=name))
    code, out, _ = penstock("topics", "apply", f"{module}.py")
    assert code == 0
    assert out.splitlines() == [
        f"created {name}",
        f"created {name}.dead-letters",
        f"schema {name} version 1",
    ]
    code, out, err = penstock("topics", "apply", f"{module}.py")
    assert (code, out) == (0, "")
    assert "nothing to do" in err

    lines = b'{"word":"a"}\n\n{"wrd":"b"}\nnonsense\n{"word":"c","count":2}\n'
    code, out, err = penstock(
        "topics", "produce", name, "--app", f"{module}.py", "--rejects", "bad.txt", stdin=lines
    )
    assert (code, out) == (1, "")
    assert f"sent 2 records to {name}\n" in err
    assert "line 3: not a Word: Object missing required field `word` [data.missing-field]" in err
    assert "line 4: " in err
    assert err.endswith("error: 2 lines were not sent\n")
    assert (tmp_path / "bad.txt").read_bytes() == b'{"wrd":"b"}\nnonsense\n'

    # Without the application the key comes from the schema that the topic was declared with.
    code, out, _ = penstock("topics", "produce", name, '{"word":"d"}', '{"count":1}', "--json")
    assert code == 1
    assert msgspec.json.decode(out)["sent"] == 1
    assert msgspec.json.decode(out)["first_rejected"][0]["line"] == 2
    with Producer(kafka) as producer:
        producer.send(name, key=b"x", value=b"broken")

    # So does the type that a condition is about.
    _, out, _ = penstock("topics", "tail", name, "--json", "--where", "count < 2 and word <> 'a'")
    assert [msgspec.json.decode(line)["key"] for line in out.splitlines()] == ["d"]
    code, _, err = penstock("topics", "tail", name, "--where", "wrod like 'd%'")
    assert code == 1
    assert "did you mean 'word'?" in err

    _, out, _ = penstock("topics", "tail", name, "--app", f"{module}.py", "--json")
    found = [msgspec.json.decode(line) for line in out.splitlines()]
    assert [(each["key"], each["value"]) for each in found] == [
        ("a", {"word": "a", "count": 1}),
        ("c", {"word": "c", "count": 2}),
        ("d", {"word": "d", "count": 1}),
        ("x", "broken"),
    ]
    assert "[data.not-json]" in found[3]["problem"]
    code, _, err = penstock("topics", "tail", f"{name}x", "--app", f"{module}.py")
    assert code == 1
    assert f"did you mean {name!r}?" in err


def test_groups_show_the_lag_of_each_partition(penstock, kafka, words):
    group = f"{words}.group"
    Groups(kafka).reset(group, {(words, 0): 4})
    code, out, _ = penstock("groups")
    assert code == 0
    assert f"{group}\tempty\t0\t{words}\t6\n" in out
    _, out, _ = penstock("groups", group)
    assert out.splitlines()[1] == f"{words}\t0\t4\t10\t6\t"
    _, out, _ = penstock("groups", group, "--json")
    assert msgspec.json.decode(out)["lag"] == 6
    code, _, err = penstock("groups", "surely.not.there")
    assert code == 1
    assert "there is no group 'surely.not.there'" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_following_shows_what_comes_and_stops_cleanly(kafka, words, tmp_path, number, code):
    environment = os.environ | {"PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap}
    command = [sys.executable, "-m", "penstock.cli", "topics", "tail", words, "-f", "--raw"]
    tail = subprocess.Popen(
        [*command, "--from", "9"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
    )
    watchdog = threading.Timer(60, tail.kill)
    watchdog.start()
    try:
        assert tail.stdout is not None
        assert tail.stdout.readline() == b'{"word":"w0","count":9}\n'
        with Producer(kafka) as producer:
            producer.send(words, key=b"new", value=b'"new"')
        assert tail.stdout.readline() == b'"new"\n'
        tail.send_signal(number)
        _, err = tail.communicate(timeout=120)
    finally:
        watchdog.cancel()
        tail.kill()
        tail.wait()
    assert tail.returncode == code
    assert b"Traceback" not in err


def test_a_cluster_that_does_not_answer_is_an_error_with_the_next_command(penstock):
    code, _, err = penstock(
        "topics",
        "list",
        "--set",
        "kafka.bootstrap=127.0.0.1:1",
        "--set",
        "kafka.request_timeout=1s",
    )
    assert code == 1
    assert err.startswith("error: Kafka at 127.0.0.1:1 does not answer [kafka.unreachable]\n")
    assert "penstock doctor" in err


def test_an_application_whose_topic_exists_otherwise_is_refused_with_both_sides(
    penstock, kafka, topic, tmp_path
):
    name = topic("other", partitions=3)
    (tmp_path / "refused_app.py").write_text(APP.format(name=name))
    code, out, err = penstock("topics", "apply", "refused_app.py")
    assert (code, out) == (1, "")
    assert f"{name}: partitions declared 1, existing 3" in err
    assert not Topics(kafka).exists(f"{name}.dead-letters")
