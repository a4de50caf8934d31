"""Records in over HTTP: on the log when they are acknowledged, each request once."""

import hashlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from penstock import App, record
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified
from penstock.machine.ports import free_ports

from .serving_site import LIMIT_SECONDS, Door, open_door, until


@record(key="device")
class Reading:
    device: str
    celsius: float


@record()
class Note:
    text: str


def declared(kafka, name):
    app = App(name)
    readings = app.stream(f"{name}.readings", Reading, max_record="1KiB")
    notes = app.stream(f"{name}.notes", Note, partitions=3, partition_by="round_robin")
    app.gateway("door", takes=(readings, notes))
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    return graph


@pytest.fixture(scope="module")
def door(kafka, tmp_path_factory):
    name = f"serving{time.time_ns()}"
    graph = declared(kafka, name)
    with open_door(
        graph, kafka, tmp_path_factory.mktemp("door"), silence_timeout=timedelta(seconds=2)
    ) as door:
        door.readings, door.notes = f"{name}.readings", f"{name}.notes"
        yield door


def on_log(kafka, topic):
    return list(LogReader(kafka).read(topic))


def at(kafka, topic, place):
    """Return the record at a place that a caller was told."""
    found = [
        r
        for r in on_log(kafka, topic)
        if (r.partition, r.offset) == (place["partition"], place["offset"])
    ]
    return found[0].value


def test_one_record_is_acknowledged_with_its_place_on_the_log(door, kafka):
    answer = door.post(door.readings, {"device": "a", "celsius": 1})
    assert answer.status == 201
    assert at(kafka, door.readings, answer.json) == b'{"device":"a","celsius":1.0}'


def test_a_list_gets_a_place_or_a_mistake_for_each_in_order(door, kafka):
    answer = door.post(
        door.readings,
        [{"device": "b", "celsius": 1}, {"device": "b"}, {"device": "b", "celsius": 3}],
    )
    assert answer.status == 207
    first, second, third = answer.json["records"]
    assert second["error"]["code"] == "data.missing-field"
    assert at(kafka, door.readings, third) == b'{"device":"b","celsius":3.0}'
    assert first["offset"] < third["offset"]
    assert (answer.json["accepted"], answer.json["refused"]) == (2, 1)
    assert door.post(door.readings, []).status == 201


def test_lines_are_answered_line_by_line_while_they_come(door, kafka):
    count = 30_000

    def lines():
        for number in range(count):
            wrong = number == 7000
            yield b'{"device":"c%d","celsius":%s}\n' % (number % 50, b'"x"' if wrong else b"1")

    answer = door.lines(door.readings, lines())
    *each, last = answer.lines
    assert last == {"accepted": count - 1, "refused": 1}
    assert [line["line"] for line in each] == list(range(1, count + 1))
    assert each[7000]["error"]["path"] == "$.celsius"
    places = {(line["partition"], line["offset"]) for line in each if "offset" in line}
    assert len(places) == count - 1
    summary = door.lines(door.readings, b'\n{"device":"c","celsius":1}\nx\n', "?answer=summary")
    assert [list(line) for line in summary.lines] == [["line", "error"], ["accepted", "refused"]]


def test_a_line_that_is_too_long_is_a_mistake_of_its_own(door):
    answer = door.lines(door.readings, b"x" * 300_000 + b'\n{"device":"c","celsius":1}\n')
    first, second, last = answer.lines
    assert (first["line"], first["error"]["code"]) == (1, "data.too-large")
    assert (second["line"], last["accepted"]) == (2, 1)


def test_records_without_a_key_go_round_the_partitions(door, kafka):
    answer = door.post(door.notes, [{"text": str(number)} for number in range(9)])
    assert Counter(each["partition"] for each in answer.json["records"]) == {0: 3, 1: 3, 2: 3}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "data.not-json"),
        (b"", 400, "data.not-json"),
        ({"device": 1, "celsius": 1}, 422, "data.wrong-type"),
        ({"device": "a", "celsius": 1, "x": 1}, 422, "data.unknown-field"),
        ([{}], 422, "request.mistakes"),
        ({"device": "a" * 2000, "celsius": 1}, 413, "data.too-large"),
        (b"[" + b"{}," * 10_001 + b"{}]", 413, "request.too-many"),
        (b" " * (9 << 20), 413, "body.too-large"),
    ],
)
def test_a_mistake_is_a_problem_with_code_and_place(door, body, status, code):
    answer = door.post(door.readings, body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status, answer.json["status"], answer.json["code"]) == (status, status, code)


def test_what_is_not_there_is_refused_in_the_same_way(door):
    assert door.post("nothing", {}).json["code"] == "stream.unknown"
    assert door.get("/v1/x").json["code"] == "path.unknown"
    assert door.get(f"/v1/streams/{door.readings}/records").json["code"] == "method.unknown"
    assert door.post(door.readings, b"x", Content_Type="text/plain").json["code"] == "body.type"
    assert door.post(door.readings, {}, "?atomic=perhaps").json["code"] == "query.value"
    assert door.post(door.readings, {}, Idempotency_Key="k" * 300).json["code"] == "idempotency.key"
    assert door.get("/v1/health", Host="evil.example").status == 421
    assert door.get("/v1/health").json == {"healthy": True, "gateway": "door"}


def test_an_atomic_request_writes_all_or_nothing(door, kafka):
    before = len(on_log(kafka, door.readings))
    wrong = door.post(door.readings, [{"device": "d", "celsius": 1}, {}], "?atomic=true")
    assert (wrong.status, wrong.json["errors"][0]["index"]) == (422, 1)
    assert len(on_log(kafka, door.readings)) == before
    good = door.post(
        door.readings, [{"device": "d", "celsius": n} for n in range(50)], "?atomic=true"
    )
    assert good.json["accepted"] == 50
    assert at(kafka, door.readings, good.json["records"][49]) == b'{"device":"d","celsius":49.0}'


def test_the_same_key_writes_once_and_gives_the_same_answer(door, kafka):
    body = [{"device": "e", "celsius": n} for n in range(3)]
    first = door.post(door.readings, body, Idempotency_Key="one")
    again = door.post(door.readings, body, Idempotency_Key="one")
    assert (first.status, again.status) == (201, 201)
    assert first.json == again.json
    assert again.headers["idempotency-replayed"] == "true"
    other = door.post(door.readings, body[:1], Idempotency_Key="one")
    assert (other.status, other.json["code"]) == (422, "idempotency.reused")
    values = [r.value for r in on_log(kafka, door.readings) if r.key == b"e"]
    assert len(values) == 3


def test_requests_with_one_key_at_once_write_once(door, kafka):
    answers = []

    def post():
        answers.append(door.post(door.notes, {"text": "at once"}, Idempotency_Key="at-once"))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {json.dumps(answer.json) for answer in answers} == {json.dumps(answers[0].json)}
    assert sum(r.value == b'{"text":"at once"}' for r in on_log(kafka, door.notes)) == 1


def test_two_gateways_share_what_they_remember(kafka, tmp_path):
    graph = declared(kafka, f"serving{time.time_ns()}")
    stream = graph.part("door").takes[0].name
    with open_door(graph, kafka, tmp_path) as one, open_door(graph, kafka, tmp_path) as two:
        body = {"device": "f", "celsius": 1}
        answers = [each.post(stream, body, Idempotency_Key="k") for each in (one, two, one, two)]
        assert [answer.status for answer in answers] == [201] * 4
        assert len({answer.body for answer in answers}) == 1
        assert one.post(stream, body, Idempotency_Key="l").status == 201
    assert len(on_log(kafka, stream)) == 2


def test_a_slow_head_a_huge_head_and_a_silent_body_end(door):
    def ends(data, within):
        with socket.create_connection(("127.0.0.1", door.port), timeout=within) as connection:
            connection.sendall(data)
            received = b""
            while more := connection.recv(65536):
                received += more
            return received

    huge = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 300_000
    with suppress(ConnectionResetError):  # it may be closed while the head is still being sent
        assert ends(huge, 30).startswith(b"HTTP/1.1 431")
    assert ends(b"garbage\r\n\r\n", 30).startswith(b"HTTP/1.1 400")
    head = f"POST /v1/streams/{door.readings}/records HTTP/1.1\r\nHost: localhost\r\n".encode()
    silent = head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    assert b'"body.slow"' in ends(silent, 30)


def test_a_killed_gateway_writes_nothing_twice(kafka, tmp_path: Path):
    """Kill it at any moment of a request with a key, repeat the request until it is answered."""
    name = f"serving{time.time_ns()}"
    (tmp_path / "app.py").write_text(APP.format(name=name))
    stream, wanted = f"{name}.readings", 12
    done, (port,) = 0, free_ports(1)
    for attempt in range(3):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "penstock.cli", "run", ".", "--part", "door"),
                *("--set", f"kafka.bootstrap={kafka.bootstrap}", "--set", f"serving.port={port}"),
            ],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: _answers(port), "the gateway answers")
            killing = threading.Timer(0.05 + 0.15 * attempt, process.kill)
            if attempt < 2:
                killing.start()
            while done < wanted:
                if _post(port, stream, done) != 201:
                    break
                done += 1
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_SECONDS)
    assert done == wanted
    values = Counter(r.value for r in on_log(kafka, stream))
    assert values == {b'{"device":"k","celsius":%d.0}' % number: 1 for number in range(wanted)}


APP = """
from penstock import App, record

app = App("{name}")

@record(key="device")
class Reading:
    device: str
    celsius: float

readings = app.stream("{name}.readings", Reading)
app.gateway("door", takes=readings)
"""


def _answers(port):
    try:
        return Door(port).get("/v1/health").status == 200
    except OSError:
        return False


def _post(port, stream, number):
    try:
        body = {"device": "k", "celsius": number}
        return Door(port).post(stream, body, Idempotency_Key=f"key-{number}").status
    except (
        OSError,
        http.client.HTTPException,
    ):  # it was killed, perhaps in the middle of an answer
        return 0


def test_a_caller_has_exactly_the_rights_of_its_roles(kafka, tmp_path, caplog):
    app = App(f"serving{time.time_ns()}")
    readings = app.stream(f"{app.name}.readings", Reading)
    notes = app.stream(f"{app.name}.notes", Note, partition_by="round_robin")
    asked = app.questions(f"{app.name}.asked", Reading, answers=Note)

    @app.service(answers=asked)
    def silent(reading: Reading) -> Note | None:
        return None

    roles = {"meter": (readings, asked), "writer": (notes,)}
    app.gateway("door", takes=(readings, notes), offers=asked, roles=roles)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    tokens = tmp_path / "tokens.toml"
    digest = hashlib.sha256(b"secret-of-ann").hexdigest()
    tokens.write_text(f'[callers.ann]\nsha256 = "{digest}"\nroles = ["meter"]\n')
    body = {"device": "a", "celsius": 1}
    key = ed25519.Ed25519PrivateKey.generate()
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [json.loads(OKPAlgorithm.to_jwk(key.public_key()))]}))
    options = {"tokens_file": str(tokens), "jwks_file": str(keys), "jwt_audience": "door"}
    claims = {"sub": "ben", "aud": "door", "exp": time.time() + 300, "roles": ["writer"]}
    with open_door(graph, kafka, tmp_path, **options) as door:
        assert door.get("/v1/health").status == 200
        assert door.post(readings.name, body).status == 401
        assert door.get("/v1/openapi.json", Authorization="Bearer wrong").status == 401
        door.token = "secret-of-ann"  # noqa: S105 - of this test alone
        assert door.post(readings.name, body).status == 201
        assert door.get("/v1/openapi.json").json["security"] == [{"token": []}]
        refused = door.post(notes.name, {"text": "x"})
        assert (refused.status, refused.json["code"]) == (403, "caller.not-allowed")
        door.token = jwt.encode(claims, key, "EdDSA")
        assert door.post(notes.name, {"text": "x"}).status == 201
        assert door.post(readings.name, body).status == 403
        audit = audited(caplog)
        assert len(audit) == 4
        assert "caller ann: caller.not-allowed" in audit[-2]
        assert "caller jwt:ben: caller.not-allowed" in audit[-1]
        known = f'[callers.guest]\nsha256 = "{hashlib.sha256(b"guest").hexdigest()}"\n'
        for after, code in (
            ("", "caller.unknown"),
            (f"{known}roles = ['writer']", "caller.not-allowed"),
        ):
            tokens.write_text(f"{known}roles = ['meter']\n")
            everything_open_ends(door, (readings.name, asked.name), tokens, after, code)
    assert len(audited(caplog)) > len(audit)
    assert not any("secret" in line or "wrong" in line for line in audited(caplog))


def everything_open_ends(door, names, tokens, after, code):
    """Open all that stays open; change the tokens; see each end with the reason."""
    readings, asked = names
    door.token, body = "guest", json.dumps({"device": "a", "celsius": 1})
    until(lambda: door.post(readings, body.encode()).status == 201, "the token is known")
    base, headers = f"ws://127.0.0.1:{door.port}/v1", {"Authorization": "Bearer guest"}
    head = (
        f"POST /v1/streams/{readings}/records HTTP/1.1\r\nHost: localhost\r\n"
        "Authorization: Bearer guest\r\nContent-Type: application/x-ndjson\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    line = f"{len(body) + 1:x}\r\n{body}\n\r\n".encode()
    with (
        connect(f"{base}/streams/{readings}/socket", additional_headers=headers) as taking,
        connect(f"{base}/questions/{asked}/socket", additional_headers=headers) as asking,
        socket.create_connection(("127.0.0.1", door.port), LIMIT_SECONDS) as lines,
    ):
        taking.send(body)
        taking.recv(LIMIT_SECONDS)  # its credit
        assert "offset" in taking.recv(LIMIT_SECONDS)
        asking.send(json.dumps({"id": 1, "question": json.loads(body)}))
        ticket = json.loads(asking.recv(LIMIT_SECONDS))["ticket"]
        lines.sendall(head.encode() + line)
        answered = b""
        while b"offset" not in answered:
            answered += lines.recv(1000)
        tokens.write_text(after)
        events = door.get(f"/v1/questions/{asked}/tickets/{ticket}/events")
        if events.status == 200:  # else it came too late, and was refused
            assert f'event: ended\ndata: {{"code":"{code}"'.encode() in events.body
        for each in (taking, asking):
            with pytest.raises(ConnectionClosed) as closed:
                deque(each, maxlen=0)  # all that it is told
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, code)
        lines.sendall(line)
        while b"0\r\n\r\n" not in answered:
            answered += lines.recv(1000)
        assert answered.count(b"offset") == 1
        assert f'"code":"{code}"'.encode() in answered


def audited(caplog):
    return [each.getMessage() for each in caplog.records if each.name == "penstock.serving.audit"]
