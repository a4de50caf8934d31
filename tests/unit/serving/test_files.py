"""Files over HTTP: safe names only, entity tags, and headers that make pages safe."""

import asyncio
import json

import pytest

from penstock.serving.application import make_routes
from penstock.serving.files import served
from penstock.serving.files.route import POLICY, FileRoute
from penstock.serving.files.served import Files, TooLarge, type_of
from penstock.serving.http.callers import Callers
from penstock.serving.http.guard import Guard


@pytest.fixture
def web(tmp_path):
    """Give a directory of pages, and a file beside it that nobody is to see."""
    (tmp_path / "secret.txt").write_text("secret")
    web = tmp_path / "web"
    (web / "css").mkdir(parents=True)
    (web / "index.html").write_text("<title>here</title>")
    (web / "css" / "main.css").write_text("p { color: red }")
    (web / ".hidden").write_text("secret")
    (web / "naïve file.txt").write_text("found")
    (web / "v1").mkdir()
    (web / "v1" / "page.html").write_text("never shown")
    (web / "out").symlink_to(tmp_path)
    (web / "inside.css").symlink_to(web / "css" / "main.css")
    return web


class Asked:
    def __init__(self, sent):
        self.status = sent[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        self.body = b"".join(each.get("body", b"") for each in sent[1:])

    @property
    def code(self):
        return json.loads(self.body)["code"]


def ask(routes, path, *, method="GET", tokens="", **headers):
    """Return the answer of a gateway with these routes."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    public = lambda path: any(route.has(path) for route in routes)  # noqa: E731
    app = make_routes({}, lambda: {"healthy": True}, routes)
    guard = Guard(app, Callers(tokens), names=(), calls_per_caller=5, public=public)
    given = {
        "host": "localhost",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), text.encode()) for name, text in given.items()],
        "client": ("127.0.0.1", 5),
    }
    asyncio.run(guard(scope, receive, send))
    return Asked(sent)


def test_a_directory_is_served_with_its_index_types_and_headers(web):
    routes = [FileRoute(Files(web))]
    answer = ask(routes, "/")
    assert (answer.status, answer.body) == (200, b"<title>here</title>")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"
    assert ask(routes, "/css/main.css").headers["content-type"].startswith("text/css")
    assert ask(routes, "/naïve file.txt").body == b"found"
    assert ask(routes, "/inside.css").body == b"p { color: red }"
    assert type_of("x.unknown") == "application/octet-stream"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/css/../../secret.txt",
        "/..",
        "/.hidden",
        "/./index.html",
        "//etc/passwd",
        "/css//main.css",
        "/css",
        "/css/",
        "/index.html/",
        "/index.html/x",
        "/out/secret.txt",
        "/..\\secret.txt",
        "/c:/x",
        "/index.html\0.css",
        "/index.html\n",
        "/" + "x" * 300,
        "/" + "x/" * 800 + "y",
        "/\ud800",
        "/nothing.html",
    ],
)
def test_a_path_that_leads_nowhere_or_elsewhere_finds_nothing(web, path):
    answer = ask([FileRoute(Files(web))], path)
    assert (answer.status, answer.code) == (404, "path.unknown")
    assert b"secret" not in answer.body.replace(b"secret.txt", b"")


def test_a_browser_that_has_a_file_is_told_so_until_it_changes(web):
    routes = [FileRoute(Files(web))]
    first = ask(routes, "/css/main.css")
    for tag in (first.headers["etag"], f'"x", W/{first.headers["etag"]}', "*"):
        again = ask(routes, "/css/main.css", if_none_match=tag)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert "content-length" not in again.headers
    (web / "css" / "main.css").write_text("p { color: blue }")
    changed = ask(routes, "/css/main.css", if_none_match=first.headers["etag"])
    assert (changed.status, changed.body) == (200, b"p { color: blue }")
    assert changed.headers["etag"] != first.headers["etag"]


def test_only_reading_and_only_below_its_own_path(web):
    routes = [FileRoute(Files(web), under="/shown/")]
    assert ask(routes, "/shown/").status == 200
    moved = ask(routes, "/shown")
    assert (moved.status, moved.headers["location"]) == (308, "/shown/")
    assert ask(routes, "/index.html").status == 404
    assert ask(routes, "/shownindex.html").status == 404
    assert ask(routes, "/shown/", method="POST").status == 404


def test_a_head_has_the_headers_and_no_body(web):
    answer = ask([FileRoute(Files(web))], "/", method="HEAD")
    assert answer.headers["content-length"] == str(len(b"<title>here</title>"))


def test_pages_need_no_token_and_everything_else_does(web, tmp_path):
    tokens = tmp_path / "tokens.toml"
    tokens.write_text("")
    routes = [FileRoute(Files(web), wants=lambda name: not name.startswith("v1/"))]
    assert ask(routes, "/", tokens=str(tokens)).status == 200
    for path in ("/v1/page.html", "/v1/openapi.json"):
        assert ask(routes, path, tokens=str(tokens)).status == 401
    assert ask(routes, "/v1/page.html").code == "path.unknown"


def test_a_file_that_is_too_large_is_refused_and_says_so(web, monkeypatch):
    monkeypatch.setattr(served, "MOST_FILE_BYTES", 10)
    assert ask([FileRoute(Files(web))], "/").code == "file.too-large"
    with pytest.raises(TooLarge):
        asyncio.run(Files(web).read(""))


def test_what_is_kept_in_memory_is_bounded(web, monkeypatch):
    monkeypatch.setattr(served, "_KEPT_BYTES", 20)
    files = Files(web)

    async def read():
        for _ in range(2):
            assert await files.read("css/main.css")
            assert await files.read("")
        return await files.read("css/main.css")

    assert asyncio.run(read()).body == b"p { color: red }"
    assert files._bytes <= 20


def test_a_set_of_files_tells_its_names(web):
    names = ["css/main.css", "index.html", "inside.css", "naïve file.txt", "v1/page.html"]
    assert list(Files(web).names()) == names


def test_routes_after_it_are_reached(web):
    route = FileRoute(Files(web), wants=lambda name: name == "index.html")
    assert route.has("/index.html")
    assert not route.has("/other.html")
    assert ask([route, FileRoute(Files(web))], "/css/main.css").status == 200
