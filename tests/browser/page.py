"""One page in the browser: looked at and used as a person would, and its log kept."""

import base64
import json
import time
from pathlib import Path
from typing import Any

from tests.browser.devtools import Browser, BrowserError

__all__ = ["Page"]

WAIT_SECONDS = 90.0
"""How long a test waits for what a page is to show: the machine may be busy."""
LOOK_SECONDS = 0.05

_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "Space": ("Space", 32, " "),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "Backspace": ("Backspace", 8, ""),
}
_SHIFT = 8


class Page:
    """A tab with cookies and storage of its own.

    ``log`` has all that the console said, ``errors`` what is wrong there: errors and warnings,
    exceptions that nobody caught, what the content security policy refused, and failed requests.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.log: list[str] = []
        self.errors: list[str] = []
        self._context = browser.command("Target.createBrowserContext")["browserContextId"]
        target = browser.command(
            "Target.createTarget", url="about:blank", browserContextId=self._context
        )["targetId"]
        self._session: str = browser.command(
            "Target.attachToTarget", targetId=target, flatten=True
        )["sessionId"]
        browser.listen(self._session, self._heard)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command of the DevTools protocol to this page."""
        return self._browser.command(method, session=self._session, **parameters)

    def close(self) -> None:
        """Close it; what is stored with it is gone."""
        self._browser.command("Target.disposeBrowserContext", browserContextId=self._context)
        self._browser.leave(self._session)

    def open(self, url: str) -> None:
        """Go to an address and wait until its document is loaded."""
        found = self.command("Page.navigate", url=url)
        if "errorText" in found:
            raise BrowserError(f"{url}: {found['errorText']}")
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; a promise is waited for."""
        found = self.command(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {_thrown(found['exceptionDetails'])}")
        return found["result"].get("value")

    def wait(self, expression: str, *, seconds: float = WAIT_SECONDS) -> Any:
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if found := self.evaluate(expression):
                    return found
                why = "it is not so"
            except BrowserError as error:  # while another document comes
                why = str(error)
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"after {seconds:g}s: {expression}: {why}\nerrors: {self.errors}\n"
                    f"the page says: {self.text()[:3000]}"
                )
            time.sleep(LOOK_SECONDS)

    def text(self, selector: str = "body") -> str:
        """Return the text that can be seen of the first element; empty where there is none."""
        return str(
            self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        )

    def wait_text(self, text: str, selector: str = "body") -> None:
        """Wait until an element shows a text."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"({element}?.innerText ?? '').includes({json.dumps(text)})")

    def click(self, selector: str) -> None:
        """Wait for an element that can be seen, and click on its middle."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{element}?.getClientRects().length > 0")
        x, y = self.evaluate(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            " const b = e.getClientRects()[0]; return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    def fill(self, selector: str, text: str) -> None:
        """Wait for a field, and write a text in place of what it has."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{element} !== null && !{element}.disabled")
        self.evaluate(f"{element}.focus(); {element}.select?.()")
        self.command("Input.insertText", text=text)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key: one of those with a name, or a character."""
        code, number, text = _KEYS.get(key, ("", ord(key[0].upper()), key))
        name = " " if key == "Space" else key
        parameters = {"key": name, "code": code, "windowsVirtualKeyCode": number}
        modifiers = _SHIFT if shift else 0
        self.command(
            "Input.dispatchKeyEvent", type="keyDown", text=text, modifiers=modifiers, **parameters
        )
        self.command("Input.dispatchKeyEvent", type="keyUp", modifiers=modifiers, **parameters)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Show the page in a window of this size."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def colours(self, scheme: str) -> None:
        """Prefer ``dark`` or ``light``; without movement, so that pictures are the same."""
        self.command(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ],
        )

    def offline(self, *, cut: bool) -> None:
        """Cut this page off from the network, or connect it again."""
        self.command(
            "Network.emulateNetworkConditions",
            offline=cut,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of what can be seen, or of the whole page, as PNG."""
        found = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def heap_bytes(self) -> int:
        """Return the memory that its scripts hold, after they were asked to tidy up."""
        self.command("HeapProfiler.collectGarbage")
        return int(self.command("Runtime.getHeapUsage")["usedSize"])

    def _heard(self, method: str, event: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            words = " ".join(
                str(each.get("value", each.get("description"))) for each in event["args"]
            )
            self.log.append(f"{event['type']}: {words}")
            if event["type"] in ("error", "warning", "assert"):
                self.errors.append(self.log[-1])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(_thrown(event["exceptionDetails"]))
        elif method == "Log.entryAdded":
            entry = event["entry"]
            self.log.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
            if entry["level"] in ("error", "warning"):
                self.errors.append(self.log[-1])


def _thrown(details: dict[str, Any]) -> str:
    exception = details.get("exception", {})
    return str(exception.get("description") or exception.get("value") or details["text"])
