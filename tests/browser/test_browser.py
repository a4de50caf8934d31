"""The browser that tests use: what it does, and what it finds fault with."""

import http.server
import threading

import pytest
from tests.browser.devtools import BrowserError

DOCUMENT = b"""<!doctype html><meta charset="utf-8"><title>t</title><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>@media (prefers-color-scheme: dark) { body { background: rgb(1, 2, 3) } }</style>
<button onclick="seen.textContent = 'clicked'">b</button><input id="field"><p id="seen"></p>
<script>field.onkeydown = (e) => { if (e.key === 'Enter') seen.textContent = field.value }</script>
"""


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(DOCUMENT if self.path == "/" else b"")

    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_page_is_used_as_a_person_would(page, address, tmp_path):
    page.open(address)
    page.click("button")
    page.wait_text("clicked", "#seen")
    page.fill("#field", "høst")
    page.press("Enter")
    page.wait_text("høst", "#seen")
    page.colours("dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(1, 2, 3)"
    page.resize(390, 844, phone=True)
    assert page.evaluate("innerWidth") == 390
    picture = tmp_path / "page.png"
    page.screenshot(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert page.heap_bytes() > 0


def test_what_goes_wrong_on_a_page_is_an_error(page, address):
    page.open(address)
    page.evaluate("console.log('fine')")
    assert page.errors == []
    page.evaluate("setTimeout(() => { throw new Error('uncaught') })")
    page.evaluate("fetch('/nothing').then((found) => found.status)")
    page.wait("true")
    assert any("uncaught" in each for each in page.errors)
    assert any("404" in each for each in page.errors)
    assert page.log[0] == "log: fine"
    page.errors.clear()


def test_a_page_goes_nowhere_but_to_this_machine(page):
    with pytest.raises(BrowserError, match="ERR_NAME_NOT_RESOLVED"):
        page.open("http://example.org/")


def test_a_page_can_be_cut_off_and_connected_again(page, address):
    page.open(address)
    page.offline(cut=True)
    assert page.evaluate("fetch('/').then(() => 'came', () => 'cut off')") == "cut off"
    page.offline(cut=False)
    assert page.evaluate("fetch('/').then(() => 'came', () => 'cut off')") == "came"
    page.errors.clear()
