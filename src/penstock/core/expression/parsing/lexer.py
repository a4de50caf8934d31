"""Text to tokens, as Spark's lexer makes them, without comments, parameters and variables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from penstock.core.expression.fault import Fault, FaultError

__all__ = ["Kind", "Token", "tokens"]

MAX_TEXT = 20_000
"""How many characters an expression may have."""


class Kind(Enum):
    """What a token is."""

    NUMBER = "a number"
    TEXT = "a text"
    NAME = "a name"
    QUOTED = "a name in backticks"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """One word of the text. ``value`` is the unquoted text or name; a sign or word as it stands."""

    kind: Kind
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """Return the bare word in lower case, the sign, or "" for what is neither."""
        return self.value.lower() if self.kind in (Kind.NAME, Kind.SIGN) else ""


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--|/\*)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[a-zA-Z])?(?!\w))
  | (?P<raw>[rR]'[^']*')
  | (?P<text>'(?:[^'\\]|\\.|'')*')
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign><=>|<>|!=|<=|>=|==|\|\||[-+*/%=<>!()\[\],.])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "number": Kind.NUMBER,
    "raw": Kind.TEXT,
    "text": Kind.TEXT,
    "quoted": Kind.QUOTED,
    "name": Kind.NAME,
    "sign": Kind.SIGN,
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|''", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_STRANGERS = {
    "$": "variables are not substituted in expressions",
    "?": "expressions have no parameters",
    ":": "expressions have no parameters and no '::' casts",
    "@": "expressions have no variables",
    ";": "an expression is not a statement",
    '"': "a text stands in single quotes, a field in backticks",
    "'": "the text is not closed",
    "`": "the name is not closed",
    "&": "bitwise signs are not part of expressions: conditions are joined by and, or, not",
    "|": "bitwise signs are not part of expressions: conditions are joined by and, or, not",
    "^": "bitwise signs are not part of expressions",
    "~": "bitwise signs are not part of expressions",
}
_COMMENT = "comments are not part of expressions"


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, the last of kind END; FaultError at what is none."""
    if len(text) > MAX_TEXT:
        message = f"the expression has {len(text)} characters; {MAX_TEXT} are the most"
        raise FaultError(Fault("expression.too-large", message, MAX_TEXT, MAX_TEXT + 1))
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        group = match.lastgroup if match else None
        if match is None or group is None or group == "comment":
            raise FaultError(_stranger(text, offset))
        if group != "space":
            value = _value(group, match.group(), offset)
            yield Token(_KINDS[group], value, offset, match.end())
        offset = match.end()
    yield Token(Kind.END, "", offset, offset)


def _stranger(text: str, offset: int) -> Fault:
    sign = text[offset]
    if text.startswith(("--", "/*"), offset):
        return Fault("expression.character", _COMMENT, offset, offset + 2)
    reason = _STRANGERS.get(sign)
    if sign in "'`":
        return Fault("expression.unclosed", str(reason), offset, len(text))
    if sign.isdigit():
        reason = "a name that begins with a digit stands in backticks"
    message = reason or f"the character {sign!r} has no meaning here"
    return Fault("expression.character", message, offset, offset + 1)


def _value(group: str, raw: str, offset: int) -> str:
    match group:
        case "raw":
            return raw[2:-1]
        case "quoted":
            return raw[1:-1].replace("``", "`")
        case "text":
            value = _ESCAPE.sub(_unescape, raw[1:-1])
            if any("\ud800" <= character <= "\udfff" for character in value):
                message = "half a surrogate pair is not a character"
                end = offset + len(raw)
                raise FaultError(Fault("expression.character", message, offset, end))
            return value
    return raw


def _unescape(match: "re.Match[str]") -> str:
    short, long, octal, single = match.groups()
    if code := short or long:
        number = int(code, 16)
        # Past the last code point there is no character; a lone surrogate is refused by the caller.
        return chr(number) if number <= 0x10FFFF else "\ud800"  # noqa: PLR2004
    if octal:
        return chr(int(octal, 8))
    if single is None:
        return "'"
    # For LIKE, Spark leaves the backslash before its two wildcards.
    return f"\\{single}" if single in "%_" else _ESCAPED.get(single, single)
