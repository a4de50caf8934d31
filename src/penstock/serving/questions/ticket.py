"""Tickets: who has one gets the answer to a question, from any process of the gateway.

A ticket says where its answer will be. It is sealed with the project's secret, so nobody can make
one, and it names its caller under the seal, so another caller's is worth nothing.
"""

import base64
import binascii
import hashlib
import hmac
import struct
from dataclasses import dataclass

__all__ = ["ID_BYTES", "TICKET_CHARACTERS", "Seal", "Ticket"]

ID_BYTES = 16
_FORM = struct.Struct(">BQHQ")
"""The version of tickets, milliseconds since 1970, the partition and the offset."""
_VERSION = 1
_SEAL_BYTES = 16
TICKET_CHARACTERS = 4 * -(-(_FORM.size + ID_BYTES + _SEAL_BYTES) // 3)
"""A ticket has no more."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A question that was asked: its id, when it was, and from where on the answer may be."""

    id: bytes
    asked_at: float
    """Seconds since 1970."""
    partition: int
    offset: int
    """The answer does not stand before this."""


class Seal:
    """Seals the tickets of one kind of questions of one gateway, and knows them again."""

    def __init__(self, secret: bytes, *of: str) -> None:
        # Each is followed by what no name has, so that no two of them run into each other.
        words = b"\x00".join(each.encode() for each in ("penstock.ticket", *of))
        self._key = hmac.digest(secret, words, "sha256")

    def seal(self, ticket: Ticket, *, caller: str) -> str:
        """Return a ticket as its caller gets it: letters, digits, ``-`` and ``_``."""
        milliseconds = round(ticket.asked_at * 1000)
        body = _FORM.pack(_VERSION, milliseconds, ticket.partition, ticket.offset) + ticket.id
        found = base64.urlsafe_b64encode(body + self._of(body, caller))
        return found.rstrip(b"=").decode()

    def open(self, text: str, *, caller: str) -> Ticket | None:
        """Return the ticket that a caller sent; None: it is none of theirs."""
        if not text.isascii() or len(text) > TICKET_CHARACTERS:
            return None
        try:
            whole = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        body, seal = whole[:-_SEAL_BYTES], whole[-_SEAL_BYTES:]
        if len(body) != _FORM.size + ID_BYTES or body[0] != _VERSION:
            return None
        if not hmac.compare_digest(seal, self._of(body, caller)):
            return None
        _, milliseconds, partition, offset = _FORM.unpack_from(body)
        return Ticket(body[_FORM.size :], milliseconds / 1000, partition, offset)

    def _of(self, body: bytes, caller: str) -> bytes:
        told = body + hashlib.sha256(caller.encode("utf-8", "surrogatepass")).digest()
        return hmac.digest(self._key, told, "sha256")[:_SEAL_BYTES]
