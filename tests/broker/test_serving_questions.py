"""Questions over HTTP: their answers come now or later, once, over deaths of all who take part.

Long because all of them share one application, and starting another costs seconds.
"""

import base64
import hmac
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from websockets.sync.client import connect

from penstock import App, record
from penstock.backbone.givingback import Choice, give_back
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.records.deadletter import read_letter
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Secret
from penstock.machine.ports import free_ports

from .serving_site import LIMIT_SECONDS, Door, open_door, until, working


@record(key="customer")
class Check:
    customer: str
    amount: float


@record()
class Verdict:
    good: bool
    why: str = ""


class Bank:
    """An application with two kinds of questions: one is answered exactly once, one at least."""

    door: Door

    def __init__(self, kafka, home, webhooks=(), **options):
        self.kafka, self.home = kafka, home
        self.name = f"bank{time.time_ns()}"
        app = App(self.name)
        self.checks = app.questions(f"{self.name}.checks", Check, answers=Verdict, **options)
        self.looks = app.questions(f"{self.name}.looks", Check, answers=Verdict, timeout="1m")
        self.brief = app.questions(
            f"{self.name}.brief", Check, answers=Verdict, timeout="1s", keeps="2s"
        )

        @app.service(answers=self.checks, delivery="exactly_once")
        def clerk(check: Check) -> Verdict | None:
            if check.amount < -100:
                raise ValueError("too little")
            if check.amount < 0:
                return None
            return Verdict(check.amount < 100, check.customer)

        @app.service(answers=self.looks, delivery="at_least_once")
        def looker(check: Check) -> Verdict:
            if check.amount < 0:
                raise ValueError(f"nobody owes {check.amount}")
            return Verdict(good=True, why=check.customer)

        @app.service(answers=self.brief)
        def glance(check: Check) -> Verdict | None:
            return None

        app.gateway("door", offers=(self.checks, self.looks, self.brief), webhooks=webhooks)
        self.graph = verified(app.graph)
        Topics(kafka).declare(self.graph.topics())

    def open(self, **options):
        return open_door(self.graph, self.kafka, self.home, **options)

    def clerk(self):
        return working(self.graph, self.kafka, self.home, "clerk")

    def asked(self, customer):
        found = LogReader(self.kafka).read(self.checks.stream.topic.name)
        return sum(json.loads(each.value)["customer"] == customer for each in found)


def ask(door, questions, customer, amount=1.0, **headers):
    body = {"customer": customer, "amount": amount}
    return door.request("POST", f"/v1/questions/{questions.name}", body, **headers)


LATER = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def bank(kafka, tmp_path_factory):
    bank = Bank(kafka, tmp_path_factory.mktemp("bank"), timeout="30s")
    looking = working(bank.graph, kafka, bank.home, "looker")
    with bank.open() as door, bank.clerk(), looking:
        bank.door = door
        yield bank


def test_who_waits_gets_the_answer(bank):
    good, bad = ask(bank.door, bank.checks, "ann"), ask(bank.door, bank.checks, "bob", 200)
    assert (good.status, good.json) == (200, {"good": True, "why": "ann"})
    assert (bad.status, bad.json) == (200, {"good": False, "why": "bob"})
    again = bank.door.get(good.headers["content-location"])
    assert (again.status, again.json) == (200, good.json)
    assert ask(bank.door, bank.looks, "ann").json == {"good": True, "why": "ann"}


def test_who_does_not_wait_gets_a_ticket_that_is_good_for_the_answer(bank):
    taken = ask(bank.door, bank.checks, "cid", **LATER)
    assert (taken.status, taken.headers["preference-applied"]) == (202, "respond-async")
    assert taken.headers["location"] == taken.json["href"]
    found = bank.door.get(taken.json["href"] + "?wait=20s")
    assert (found.status, found.json) == (200, {"good": True, "why": "cid"})
    told = bank.door.get(taken.json["href"] + "/events")
    assert b'event: answer\ndata: {"good":true,"why":"cid"}' in told.body
    over = bank.door.get(taken.json["href"] + "/events", Last_Event_ID="answer")
    assert over.status == 204


def test_a_question_without_an_answer_ends_in_time_with_a_ticket(bank):
    late = ask(bank.door, bank.checks, "dan", -1, Prefer="wait=1")
    assert (late.status, late.json["code"]) == (504, "answer.late")
    assert late.headers["content-type"] == "application/problem+json"
    pending = bank.door.get(late.json["href"])
    assert (pending.status, pending.headers["retry-after"]) == (202, "1")
    assert pending.json["ticket"] == late.json["ticket"]
    either = ask(bank.door, bank.checks, "dan", -1, Prefer="respond-async, wait=1")
    assert either.status == 202


def test_a_question_that_the_service_fails_on_is_answered_with_a_problem_everywhere(bank):
    door = bank.door
    failed = ask(door, bank.looks, "eve", -1.0, Idempotency_Key="failing")
    assert (failed.status, failed.json["code"]) == (422, "answer.failed")
    assert failed.json["reason"] == "user.raised"
    assert "owes" not in failed.body.decode()  # what the code says is for its operators
    again = ask(door, bank.looks, "eve", -1.0, Idempotency_Key="failing")
    assert (again.status, again.json) == (failed.status, failed.json)
    later = ask(door, bank.looks, "eve", -1.0, **LATER)
    assert later.status == 202
    href = later.json["href"]
    waited = door.get(f"{href}?wait=30s")
    assert (waited.status, waited.json) == (422, failed.json)
    events = door.get(f"{href}/events")
    assert b"event: failed" in events.body
    with bank.open() as other:  # it reads the log
        assert other.get(f"{href}?wait=30s").json == failed.json
    url = f"ws://127.0.0.1:{door.port}/v1/questions/{bank.looks.name}/socket"
    with connect(url, compression=None) as client:
        client.send(json.dumps({"id": 1, "question": {"customer": "eve", "amount": -1.0}}))
        told = [json.loads(client.recv(timeout=LIMIT_SECONDS)) for _ in range(2)]
    assert (told[1]["id"], told[1]["problem"]) == (1, failed.json)


def test_the_same_key_asks_once_and_gives_the_same_answer(bank):
    key = {"Idempotency-Key": "k-1"}
    first = ask(bank.door, bank.checks, "eve", **key)
    again = ask(bank.door, bank.checks, "eve", **key)
    later = ask(bank.door, bank.checks, "eve", **key, **LATER)
    assert first.status == again.status == later.status == 200
    assert first.json == again.json == later.json
    assert again.headers["idempotency-replayed"] == "true"
    assert first.headers["content-location"] == again.headers["content-location"]
    assert bank.asked("eve") == 1
    other = ask(bank.door, bank.checks, "eve", 2, **key)
    assert (other.status, other.json["code"]) == (422, "idempotency.reused")


def test_any_process_of_the_gateway_answers_for_any_ticket_also_one_that_began_later(bank):
    tickets = [ask(bank.door, bank.checks, f"f{number}", **LATER) for number in range(5)]
    hrefs = [each.json["href"] for each in tickets]
    until(lambda: all(bank.door.get(each).status == 200 for each in hrefs), "all are answered")
    with bank.open(kept_answer_bytes=1) as other:
        # It has none of these in memory: they are looked for on the log.
        for number, href in enumerate(hrefs):
            assert other.get(href).json == {"good": True, "why": f"f{number}"}
        late = ask(bank.door, bank.checks, "gil", -1, Prefer="wait=0")
        assert other.get(late.json["href"]).status == 202
        key = {"Idempotency-Key": "k-2"}
        here, there = (
            ask(bank.door, bank.checks, "gil", **key),
            ask(other, bank.checks, "gil", **key),
        )
        assert (here.status, here.json) == (there.status, there.json)
        assert bank.asked("gil") == 2


def test_a_ticket_expires_as_declared(bank):
    taken = ask(bank.door, bank.brief, "ida", **LATER)
    assert taken.status == 202
    told = until(lambda: gone(bank.door, taken.json["href"]), "the ticket expires")
    assert told["code"] == "ticket.expired"
    assert bank.door.get(taken.json["href"] + "/events").status == 410


def gone(door, href):
    given = door.get(href)
    return given.json if given.status == 410 else None


def test_questions_over_a_websocket_are_answered_under_their_own_ids(bank):
    url = f"ws://127.0.0.1:{bank.door.port}/v1/questions/{bank.checks.name}/socket"

    def question(number, amount=1, **more):
        body = {"customer": f"j{number}", "amount": amount}
        return json.dumps({"id": number, "question": body, **more})

    with connect(url, compression=None) as client:
        for number in range(150):  # more than may be open at once
            client.send(question(number, key=f"j{number % 100}" if number < 100 else None))
        answers, tickets = {}, {}
        while len(answers) < 150:
            told = json.loads(client.recv(timeout=LIMIT_SECONDS))
            assert "problem" not in told
            (tickets if "ticket" in told else answers)[told["id"]] = told
        assert [answers[each]["answer"]["why"] for each in range(150)] == [
            f"j{number}" for number in range(150)
        ]
        assert tickets.keys() == answers.keys()
        wrong = ["{", "[]", '{"id": 1}', '{"id": 2, "question": {}, "x": 1}', b"\xff"]
        wrong += [question(3, "x"), question(4, key=""), '{"id": 5, "ticket": "x"}']
        codes = []
        for each in wrong:
            client.send(each)
            codes.append(json.loads(client.recv(timeout=LIMIT_SECONDS))["problem"]["code"])
        assert codes[:5] == ["message.wrong"] * 5
        assert codes[5:] == ["data.wrong-type", "idempotency.key", "ticket.unknown"]
    with connect(url, compression=None) as client:
        client.send(json.dumps({"id": "again", "ticket": tickets[7]["ticket"]}))
        told = json.loads(client.recv(timeout=LIMIT_SECONDS))
        assert told == {"id": "again", "answer": answers[7]["answer"]}


class Receiver(ThreadingHTTPServer):
    """Takes answers, and refuses the first two, and those to a path that it is to refuse."""

    def __init__(self):
        self.came = []
        self.refused = ""
        super().__init__(("127.0.0.1", 0), Taking)


class Taking(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.came.append((self.path, dict(self.headers), body))
        refused = self.server.refused and self.path.startswith(self.server.refused)
        self.send_response(500 if refused or len(self.server.came) < 3 else 204)
        self.end_headers()

    def log_message(self, *args): ...


def test_an_answer_is_sent_to_a_webhook_signed_until_it_is_taken_by_whichever_process(
    kafka, tmp_path
):
    secret = "secret-of-these-webhooks"  # noqa: S105 - of this test alone
    with Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        allowed = f"http://127.0.0.1:{receiver.server_port}/answers/"
        bank = Bank(kafka, tmp_path, webhooks=(allowed,))
        options = {"webhook_secret": Secret(secret), "webhook_patience": timedelta(seconds=4)}
        with bank.open(**options) as door:
            refused = ask(door, bank.checks, "kim", Webhook_Url="https://evil.example/answers/")
            assert (refused.status, refused.json["code"]) == (400, "webhook.not-allowed")
            taken = ask(door, bank.checks, "kim", **LATER, Webhook_Url=f"{allowed}7?a=b")
            assert taken.status == 202
        # The gateway that was asked has gone before there is an answer.
        with bank.clerk(), bank.open(**options) as door:
            until(lambda: len(receiver.came) >= 3, "the answer is taken")
            assert door.get(taken.json["href"]).json == {"good": True, "why": "kim"}
            before = len(receiver.came)
            ask(door, bank.checks, "eve", -200.0, **LATER, Webhook_Url=f"{allowed}8")
            until(lambda: len(receiver.came) > before, "the failure is told, too")
            untaken = untaken_answer(bank, door, receiver, f"{allowed}never")
        receiver.shutdown()
    again, *tries = (each for each in reversed(receiver.came) if each[0] == "/answers/never")
    assert len(tries) > 1
    assert {(each[1]["webhook-id"], each[2]) for each in tries} == {untaken}
    assert (again[1]["webhook-id"], again[2]) == untaken
    receiver.came = [each for each in receiver.came if each[0] != "/answers/never"]
    path, headers, body = receiver.came.pop()
    assert (path, headers["Content-Type"]) == ("/answers/8", "application/problem+json")
    assert json.loads(body)["code"] == "answer.failed"
    (path, headers, body), *others = receiver.came
    assert [(each[0], each[2]) for each in others] == [(path, body)] * 2
    assert (path, json.loads(body)) == ("/answers/7?a=b", {"good": True, "why": "kim"})
    assert len({each[1]["webhook-id"] for each in receiver.came}) == 1
    told = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret.encode(), told, "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{signature}"


def untaken_answer(bank, door, receiver, url):
    """See an answer become a dead letter, and go when that is given back; return id and body."""
    receiver.refused = "/answers/never"
    ask(door, bank.checks, "liz", **LATER, Webhook_Url=url)
    counted = until(
        lambda: (told := door.reports[-1]).counts.dead_lettered and told, "it is given up"
    )
    assert (counted.counts.dead_lettered, counted.counts.balanced) == (1, True)
    assert "webhook.untaken" in counted.detail["last dead letter"]
    found = LogReader(bank.kafka).read(bank.graph.dead_letters.name)
    letters = [read_letter(each.key, each.value, each.headers) for each in found]
    (letter,) = [each for each in letters if each.code == "webhook.untaken"]
    assert (letter.part, letter.coordinates.topic) == ("door", bank.checks.answers.topic.name)
    assert letter.reason.endswith("within 4s: it was answered with 500")
    assert letter.key[16:].decode() == url
    receiver.refused, before = "", len(receiver.came)
    assert give_back(bank.graph, bank.kafka, Choice(code="webhook.untaken")).counts["back"] == 1
    until(lambda: len(receiver.came) > before, "what was given back is sent")
    return letter.key[:16].hex(), letter.value


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, "data.not-json"),
        (b"", {}, 400, "data.not-json"),
        (b"[]", {}, 422, "data.wrong-type"),
        (b"[" * 100_000, {}, 422, "data.wrong-type"),
        ({"customer": "a"}, {}, 422, "data.missing-field"),
        ({"customer": "a", "amount": 1, "x": 1}, {}, 422, "data.unknown-field"),
        ({"customer": "a" * 2_000_000, "amount": 1}, {}, 413, "data.too-large"),
        (b" " * (9 << 20), {}, 413, "body.too-large"),
        ({"customer": "a", "amount": 1}, {"Content-Type": "text/plain"}, 415, "body.type"),
        (b"{}", {"Content-Type": "application/x-ndjson"}, 415, "body.type"),
        ({}, {"Idempotency-Key": "k" * 300}, 400, "idempotency.key"),
    ],
)
def test_a_question_with_a_mistake_is_refused_with_its_place(bank, body, headers, status, code):
    answer = bank.door.request("POST", f"/v1/questions/{bank.checks.name}", body, **headers)
    assert (answer.status, answer.json["code"]) == (status, code)


def test_a_ticket_that_nobody_was_given_is_unknown(bank):
    path = f"/v1/questions/{bank.checks.name}/tickets/"
    good = ask(bank.door, bank.checks, "hal", **LATER).json["ticket"]
    changed = good[:-1] + ("A" if good[-1] != "A" else "B")
    other = f"/v1/questions/{bank.looks.name}/tickets/{good}"
    for wrong in (path + "x", path + "A" * 66, path + changed, path + "%C3%A4", other):
        refused = bank.door.get(wrong)
        assert (refused.status, refused.json["code"]) == (404, "ticket.unknown")
    assert bank.door.get(path + good + "?wait=soon").json["code"] == "query.value"
    nobody = bank.door.request("POST", "/v1/questions/none", {})
    assert (nobody.status, nobody.json["code"]) == (404, "questions.unknown")


def test_an_answer_outlives_the_gateway_and_the_service_that_are_killed(kafka, tmp_path):
    """Kill both between question and answer, in turn; every question is answered, and once.

    The webhook of each question gets its answer, too, though it takes none before the gateway
    that has the first ones is killed.
    """
    name = f"mortal{time.time_ns()}"
    (port,), wanted = free_ports(1), 12
    door, tickets, receiver = Door(port), {}, Receiver()
    receiver.refused = "/"
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    hook = f"http://127.0.0.1:{receiver.server_port}/"
    (tmp_path / "app.py").write_text(APP.format(name=name, hook=hook))
    running = {"door": process(tmp_path, kafka, "door", port)}
    try:
        until(lambda: answers(door), "the gateway answers")
        for number in range(wanted):
            if number == 4:  # nobody has answered so far
                running["door"].kill()
                running["door"].wait(LIMIT_SECONDS)
                running["door"] = process(tmp_path, kafka, "door", port)
                running["clerk"] = process(tmp_path, kafka, "clerk", port)
            if number == 8:
                until(lambda: receiver.came, "the service answers, and the webhook is tried")
                for part in ("clerk", "door"):
                    running[part].kill()
                    running[part].wait(LIMIT_SECONDS)
                    running[part] = process(tmp_path, kafka, part, port)
                receiver.refused = ""
            ask_it = partial(asked, door, name, number, hook)
            tickets[number] = until(ask_it, "the question is asked")
        found = [until(partial(fetched, door, each), "an answer") for each in tickets.values()]
        again = [asked(door, name, number, hook) for number in range(wanted)]
        until(lambda: len({each[0] for each in receiver.came}) == wanted, "all webhooks are told")
    finally:
        receiver.shutdown()
        receiver.server_close()
        for each in running.values():
            each.kill()
            each.wait(LIMIT_SECONDS)
    # The service counts how often it has handled each customer.
    assert found == [{"good": True, "why": f"c{number}:1"} for number in range(wanted)]
    assert again == found
    for path in {each[0] for each in receiver.came}:
        came = {(each[1]["webhook-id"], each[2]) for each in receiver.came if each[0] == path}
        ((_, body),) = came  # perhaps more than once, but never another answer
        assert json.loads(body) == found[int(path.removeprefix("/"))]


def process(directory, kafka, part, port):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "penstock.cli", "run", ".", "--part", part),
            *("--set", f"kafka.bootstrap={kafka.bootstrap}", "--set", f"serving.port={port}"),
            *("--set", "services.session_timeout=6s"),
        ],
        cwd=directory,
        env=os.environ | {"PENSTOCK_SERVING_WEBHOOK_SECRET": "secret-of-this-test"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def answers(door):
    try:
        return door.get("/v1/health").status == 200
    except OSError:
        return False


def asked(door, name, number, hook):
    """Return the answer or the ticket of a question; None: ask again."""
    body = {"customer": f"c{number}", "amount": 1}
    try:
        given = door.request(
            "POST",
            f"/v1/questions/{name}.checks",
            body,
            **LATER,
            Idempotency_Key=f"key-{number}",
            Webhook_Url=f"{hook}{number}",
        )
    except (OSError, http.client.HTTPException):
        return None
    return given.json.get("href", given.json) if given.status in (200, 202) else None


def fetched(door, href):
    """Return the answer for a ticket; None: there is none yet."""
    try:
        given = door.get(f"{href}?wait=1s")
    except (OSError, http.client.HTTPException):
        return None
    return given.json if given.status == 200 else None


APP = """
from penstock import App, State, record

app = App("{name}")

@record(key="customer")
class Check:
    customer: str
    amount: float

@record()
class Verdict:
    good: bool
    why: str

checks = app.questions("{name}.checks", Check, answers=Verdict)

@app.service(answers=checks, delivery="exactly_once")
def clerk(check: Check, seen: State[int]) -> Verdict:
    seen.set(seen.get(0) + 1)
    return Verdict(check.amount < 100, f"{{check.customer}}:{{seen.get()}}")

app.gateway("door", offers=checks, webhooks="{hook}")
"""
