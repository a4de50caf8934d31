import threading

import pytest

from penstock.connectors.lines import Line


class ListFeed:
    """A feed that keeps what it is given."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.lines: list[Line] = []
        self.facts: dict[str, str] = {}
        self.settled = 0
        self.trouble = ""

    @property
    def contents(self) -> list[bytes]:
        return [line.content for line in self.lines]

    def put(self, line: Line) -> None:
        self.lines.append(line)

    def settle(self) -> None:
        self.settled = len(self.lines)

    def tell(self, fact: str, text: str) -> None:
        self.facts[fact] = text

    def complain(self, trouble: str) -> None:
        self.trouble = trouble


@pytest.fixture
def feed() -> ListFeed:
    return ListFeed()
