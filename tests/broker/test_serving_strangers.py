"""The gateway as strangers see it: the guide's examples, and whatever its document allows."""

import http.client
import json
import re
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import App, record
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified

from .serving_site import open_door, working


@record(key="device")
class Reading:
    device: str
    celsius: float


@record()
class Note:
    text: str


GUIDES = {"serving.md": ("serving.md", "queries.md"), "asking.md": ("asking.md",)}


@pytest.mark.parametrize(("name", "service"), [("serving.md", "watch"), ("asking.md", "credit")])
def test_the_examples_of_the_guide_give_what_it_says(kafka, tmp_path, name, service, capsys):
    docs = Path(__file__).parents[2] / "docs"
    page = "".join((docs / each).read_text() for each in GUIDES[name])
    fences = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {"__name__": "guide"}
    code, *programs = [text for kind, text in fences if kind == "python"]
    exec(compile(code, name, "exec"), module)  # noqa: S102 - that is the point
    graph = verified(module["app"].graph)
    Topics(kafka).declare(graph.topics())
    try:
        with open_door(graph, kafka, tmp_path) as door, working(graph, kafka, tmp_path, service):
            for _, text in (each for each in fences if each[0] == "curl"):
                commands = text.replace("localhost:8800", f"localhost:{door.port}")
                wanted = [line for line in commands.splitlines() if not line.startswith("curl ")]
                given = []
                for command in (line for line in commands.splitlines() if line.startswith("curl ")):
                    done = subprocess.run(
                        ["bash", "-c", command], check=True, capture_output=True, timeout=60
                    )
                    told = re.sub(r'("stale_seconds":)[\d.e-]+', r"\g<1>0.0", done.stdout.decode())
                    given += re.sub(r"[\w-]{60,}", "TICKET", told).splitlines()
                assert given == wanted
            for program in programs if name == "asking.md" else ():
                exec(program.replace("localhost:8800", f"localhost:{door.port}"), module)  # noqa: S102
            if name == "asking.md":
                assert capsys.readouterr().out == "Verdict(good=True)\nVerdict(good=False)\n"
    finally:
        Topics(kafka).delete([topic.name for topic in graph.topics()])


def test_tls_and_the_pages_of_other_origins(kafka, tmp_path):
    app = App(f"tls{time.time_ns()}")
    readings = app.stream(f"{app.name}.readings", Reading)
    app.gateway("door", takes=readings)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "1", "-keyout", key, "-out", certificate, *name]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    options = {
        "tls_certificate_file": certificate,
        "tls_key_file": key,
        "origins": "https://page.example",
    }
    trusted = ssl.create_default_context(cafile=certificate)
    with open_door(graph, kafka, tmp_path, **options) as door:
        assert door.reports[-1].detail["listening on"].startswith("https://")

        def ask(method: str, origin: str, **headers: str) -> http.client.HTTPResponse:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", door.port, timeout=60, context=trusted
            )
            sent = {"Origin": origin} | {n.replace("_", "-"): v for n, v in headers.items()}
            connection.request(method, "/v1/health", headers=sent)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer

        for origin, allowed in (("https://page.example", True), ("https://evil.example", False)):
            answer = ask("GET", origin)
            assert answer.status == 200
            assert (answer.getheader("access-control-allow-origin") == origin) == allowed
            before = ask("OPTIONS", origin, Access_Control_Request_Method="POST")
            assert (before.status == 200) == allowed


# What is sent here comes from the document alone, as a stranger's tool would do it.

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
SOME = PLAIN | st.lists(PLAIN, max_size=3)
ODD = SOME | st.lists(SOME, max_size=3) | st.dictionaries(st.text(), SOME, max_size=3)


def from_schema(schema, schemas):
    """Return a strategy for what a schema allows."""
    if "$ref" in schema:
        return from_schema(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return st.one_of([from_schema(each, schemas) for each in schema["anyOf"]])
    if schema["type"] == "object":
        fields = {name: from_schema(each, schemas) for name, each in schema["properties"].items()}
        return st.fixed_dictionaries(fields)
    if schema["type"] == "array":
        return st.lists(from_schema(schema["items"], schemas), max_size=3)
    if schema["type"] == "string":
        return st.text(
            st.characters(codec="utf-8"), min_size=schema.get("minLength", 0), max_size=20
        )
    return st.floats(-1e300, 1e300) | st.integers(-(2**53), 2**53)


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


@st.composite
def requests(draw, document):
    """Return a request: as the document says, or wrong in one of its pieces."""
    path, method, operation = draw(st.sampled_from(list(operations(document))))
    headers, query, body, right = {}, {}, None, True
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query" and draw(st.booleans()):
            query[parameter["name"]] = draw(
                st.sampled_from(["true", "each", "summary", "1", "\u2713", "%00", "'"])
            )
            right = False
    if content := operation.get("requestBody"):
        kind = draw(st.sampled_from([*content["content"], "text/plain"]))
        headers["Content-Type"] = kind
        schemas = document["components"]["schemas"]
        wanted = content["content"].get(kind, {}).get("schema", {"type": "string"})
        value = draw(from_schema(wanted, schemas))
        how = draw(st.sampled_from(["right", "right", "odd", "bytes", "cut"]))
        body = json.dumps(value).encode()
        if how == "odd":
            body = json.dumps(draw(ODD)).encode()
        elif how == "bytes":
            body = draw(st.binary(max_size=50))
        elif how == "cut":
            body = body[: len(body) // 2]
        right = right and how == "right" and kind != "text/plain"
    return path, method.upper(), query, headers, body, operation, right


def test_whatever_is_sent_the_answer_is_one_that_the_document_tells(kafka, tmp_path):
    app = App(f"fuzz{time.time_ns()}")
    readings = app.stream(f"{app.name}.readings", Reading)
    notes = app.stream(f"{app.name}.notes", Note, partitions=3, partition_by="round_robin")
    app.gateway("door", takes=(readings, notes))
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    with open_door(graph, kafka, tmp_path) as door:
        send_everything(door)


def send_everything(door):
    document = door.get("/v1/openapi.json").json
    assert document["openapi"] == "3.1.0"

    @settings(
        max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(requests(document))
    def send(request):
        path, method, query, headers, body, operation, right = request
        target = quote(path) + ("?" + urlencode(query) if query else "")
        sent = {name.replace("-", "_"): value for name, value in headers.items()}
        answer = door.request(method, target, body, **sent)
        assert str(answer.status) in operation["responses"], (answer.status, answer.body)
        assert answer.status < 500
        if answer.status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert {"type", "title", "status", "code", "detail"} <= set(answer.json)
        if right:
            assert answer.status < 300, answer.body

    send()
