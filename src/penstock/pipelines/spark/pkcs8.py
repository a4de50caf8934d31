"""What an encrypted private key (PKCS#8, PBES2) says of how it is encrypted: DER, read by hand.

Java knows only some of the ciphers that PBES2 may name, and ``openssl req`` uses another one.
"""

import hashlib
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Pbes2", "read_pbes2"]

Node: TypeAlias = "bytes | list[Node]"

_SEQUENCE = 0x30
_LONG_FORM = 0x80
_MOST_ITERATIONS = 10_000_000

_PBES2 = bytes.fromhex("2a864886f70d01050d")
_PBKDF2 = bytes.fromhex("2a864886f70d01050c")
_DIGESTS = {
    bytes.fromhex("2a864886f70d0207"): "sha1",
    bytes.fromhex("2a864886f70d0208"): "sha224",
    bytes.fromhex("2a864886f70d0209"): "sha256",
    bytes.fromhex("2a864886f70d020a"): "sha384",
    bytes.fromhex("2a864886f70d020b"): "sha512",
}
_CIPHERS = {
    bytes.fromhex("2a864886f70d0307"): ("DESede", 24),
    bytes.fromhex("608648016503040102"): ("AES", 16),
    bytes.fromhex("608648016503040116"): ("AES", 24),
    bytes.fromhex("60864801650304012a"): ("AES", 32),
}


@dataclass(frozen=True, slots=True)
class Pbes2:
    """An encrypted key: how a password becomes the cipher's key, and what is encrypted."""

    digest: str
    salt: bytes
    iterations: int
    cipher: str
    """As Java calls it; in CBC mode."""
    key_bytes: int
    vector: bytes
    data: bytes

    def key(self, password: str) -> bytes:
        """Return the cipher's key."""
        return hashlib.pbkdf2_hmac(
            self.digest, password.encode(), self.salt, self.iterations, self.key_bytes
        )


def read_pbes2(der: bytes) -> Pbes2 | None:
    """Return how a key is encrypted; None where it is in another way, or no such key."""
    try:
        match _nodes(der):
            case [
                [[scheme, [[function, [bytes(salt), bytes(count), *rest]], cipher]], bytes(data)]
            ]:
                known = (scheme, function) == (_PBES2, _PBKDF2)
            case _:
                return None
        match cipher:
            case [bytes(named), bytes(vector)] if known:
                name, size = _CIPHERS[named]
            case _:
                return None
        iterations = int.from_bytes(count)
        if not 0 < iterations <= _MOST_ITERATIONS:
            return None
        return Pbes2(_digest(rest), salt, iterations, name, size, vector, data)
    except (KeyError, IndexError, RecursionError):
        return None


def _digest(rest: list[Node]) -> str:
    """Return the digest; the length of the key may stand before it."""
    for each in rest:
        match each:
            case [bytes(named), *_]:
                return _DIGESTS[named]
    return "sha1"


def _nodes(der: bytes) -> list[Node]:
    """Return the values of a DER text, sequences as lists."""
    found: list[Node] = []
    while der:
        tag, length, at = der[0], der[1], 2
        if length & _LONG_FORM:
            at += length & ~_LONG_FORM
            length = int.from_bytes(der[2:at])
        body, der = der[at : at + length], der[at + length :]
        if len(body) < length:
            raise IndexError("it ends in the middle")
        found.append(_nodes(body) if tag == _SEQUENCE else body)
    return found
