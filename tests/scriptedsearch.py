"""An index of OpenSearch as far as a sink uses it: external versions, deletions, answers for each row."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Refusal = Callable[[dict[str, Any]], tuple[int, str] | None]


class Search:
    """Keeps documents with their versions, and those of deletions."""

    def __init__(self, refusal: Refusal = lambda _document: None) -> None:
        self.documents: dict[tuple[str, str], Any] = {}
        self.versions: dict[tuple[str, str], int] = {}
        self.refusal = refusal
        self.requests = 0
        self.cut_each = 0

    def clear(self) -> None:
        self.documents.clear()
        self.versions.clear()

    def __call__(
        self, method: str, path: str, body: bytes
    ) -> tuple[int | None, dict[str, str], bytes]:
        self.requests += 1
        parts = urlsplit(path)
        words = [unquote(each) for each in parts.path.strip("/").split("/")]
        status, answer = 200, {}
        if words == ["_bulk"]:
            answer = {"items": self._bulk(body)}
        elif words[1:] == ["_mget"]:
            answer = {"docs": [self._found(words[0], each) for each in json.loads(body)["ids"]]}
        elif method == "PUT" and words[1] == "_doc":
            version = int(parse_qs(parts.query)["version"][0])
            answer = self._put((words[0], words[2]), version, json.loads(body))
            status = answer["status"]
        else:
            raise AssertionError(path)
        cut = self.cut_each and self.requests % self.cut_each == 0
        return (None if cut else status), {}, json.dumps(answer).encode()

    def of(self, index: str) -> dict[str, Any]:
        return {key: each for (place, key), each in self.documents.items() if place == index}

    def _bulk(self, body: bytes) -> list[dict[str, Any]]:
        assert body.endswith(b"\n")
        lines = [json.loads(line) for line in body.split(b"\n")[:-1]]
        items = []
        while lines:
            [(verb, about)] = lines.pop(0).items()
            document = lines.pop(0) if verb == "index" else None
            assert about["version_type"] == "external"
            place = (about["_index"], about["_id"])
            items.append({verb: self._put(place, about["version"], document)})
        return items

    def _put(self, place: tuple[str, str], version: int, document: Any) -> dict[str, Any]:
        if document is not None and (refused := self.refusal(document)):
            return {"status": refused[0], "error": {"type": refused[1], "reason": "as it is"}}
        if (current := self.versions.get(place, 0)) >= version:
            words = f"version conflict, current version [{current}]"
            return {
                "status": 409,
                "error": {"type": "version_conflict_engine_exception", "reason": words},
            }
        self.versions[place] = version
        if document is not None:
            self.documents[place] = document
        elif self.documents.pop(place, None) is None:
            return {"status": 404, "result": "not_found"}
        return {"status": 200}

    def _found(self, index: str, key: str) -> dict[str, Any]:
        place = (index, key)
        if place not in self.documents:
            return {"_index": index, "_id": key, "found": False}
        return {"_index": index, "_id": key, "found": True, "_version": self.versions[place]}
