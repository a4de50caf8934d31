"""What goes over a connection between two processes: frames, and a handshake before the first.

A frame is its length in four bytes, a number in eight, and a payload. The number of an answer is
that of its question. In the handshake each side proves that it knows the secret, without saying it:
the host sends a nonce, the visitor answers with a nonce of its own and a proof, the host with a
proof of its own. What follows is neither encrypted nor signed: these ports are for a network of
one's own.
"""

import hashlib
import hmac
import secrets
from asyncio import StreamReader, StreamWriter

from penstock.errors import ConfigurationError, TransientError

__all__ = ["MAX_FRAME_BYTES", "greet", "read_frame", "welcome", "write_frame"]

MAX_FRAME_BYTES = 32 << 20
_HEAD = 12
_NONCE = 32
_PROOF = 32
_GREETING = b"penstock/1\n"


async def read_frame(reader: StreamReader) -> tuple[int, bytes]:
    """Return the number and the payload of the next frame; EOFError where there is none."""
    head = await reader.readexactly(_HEAD)
    length = int.from_bytes(head[:4])
    if length > MAX_FRAME_BYTES:
        raise EOFError(f"a frame of {length} bytes")
    return int.from_bytes(head[4:]), await reader.readexactly(length)


def write_frame(writer: StreamWriter, number: int, payload: bytes) -> None:
    """Queue a frame."""
    writer.write(len(payload).to_bytes(4) + number.to_bytes(8) + payload)


async def welcome(reader: StreamReader, writer: StreamWriter, secret: bytes) -> bool:
    """Do the host's part of the handshake; return whether the visitor knows the secret."""
    nonce = secrets.token_bytes(_NONCE)
    writer.write(_GREETING + nonce)
    other, proof = await reader.readexactly(_NONCE), await reader.readexactly(_PROOF)
    if not hmac.compare_digest(proof, _proof(secret, b"visitor", nonce, other)):
        return False
    writer.write(_proof(secret, b"host", nonce, other))
    return True


async def greet(reader: StreamReader, writer: StreamWriter, secret: bytes) -> None:
    """Do the visitor's part of the handshake; ConfigurationError: they have different secrets."""
    try:
        greeting = await reader.readexactly(len(_GREETING))
        nonce = await reader.readexactly(_NONCE)
    except EOFError as error:
        raise TransientError("it hung up", code="peer.gone") from error
    if greeting != _GREETING:
        raise TransientError("it is no worker of this version", code="peer.strange")
    own = secrets.token_bytes(_NONCE)
    writer.write(own + _proof(secret, b"visitor", nonce, own))
    try:
        proof = await reader.readexactly(_PROOF)
    except EOFError:
        proof = b""
    if not hmac.compare_digest(proof, _proof(secret, b"host", nonce, own)):
        raise ConfigurationError(
            "gateway and worker have different secrets",
            code="peer.secret",
            hint="give both the same serving.secret, or the same home",
        )


def _proof(secret: bytes, side: bytes, nonce: bytes, other: bytes) -> bytes:
    return hmac.digest(secret, side + nonce + other, hashlib.sha256)
