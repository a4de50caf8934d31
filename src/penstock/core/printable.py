"""Text from outside made safe to look at: what it holds is seen, and does nothing.

A record, a name or the message of an exception may hold escape sequences that move a cursor or
write a clipboard, letters that turn the line around, or no end. Everything that is shown to people
passes through here. Data for programs (JSON, CSV in a file, raw bytes) do not: they keep their
value. :func:`json_printable` writes JSON whose value is the same and whose text is printable.
"""

import re
import unicodedata
from collections.abc import Iterator

__all__ = [
    "CELL_CHARACTERS",
    "LINE_CHARACTERS",
    "TEXT_LINES",
    "json_printable",
    "printable",
    "printable_lines",
]

CELL_CHARACTERS = 2_000
"""So many characters of one value are shown where people look."""
LINE_CHARACTERS = 20_000
"""So many characters of one line are shown, wherever it goes."""
TEXT_LINES = 2_000
"""So many lines of one text are shown."""
_MARKS = 8
"""So many combining marks stand on one letter: more than any script needs."""

# Letters that Unicode calls ignorable though they count as printable: they take no place, or hide.
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0d\uffa0"
    "\U000e0100-\U000e01ef]"
)
# Between letters of these kinds a joiner is seen: in emoji, and in Arabic and Indic scripts.
_PICTURES = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_JOINING = "\u0620-\u065f\u066e-\u06d3\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17dd"
_JOINER = re.compile(
    f"(?<=[{_PICTURES}])\u200d(?=[{_PICTURES}])|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
)
# Letters of Latin, Cyrillic, Chinese, Japanese and Korean of which there is nothing to look at.
_USUAL = re.compile(
    "[ -~\u00a0-\u00ac\u00ae-\u02ff\u0400-\u0482\u048a-\u052f\u3041-\u3096\u30a0-\u30ff"
    "\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]*"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPACE = "Zs"
_BYTE, _WORD = 0x100, 0x10000
# What JSON leaves as it is and a terminal does not: DEL, C1, bidi controls, separators and so on.
# A text with any other character beyond ASCII is looked at letter by letter.
_BEYOND_ASCII = re.compile("[\u007f-\U0010ffff]+")


def printable(text: str, *, most: int = LINE_CHARACTERS) -> str:
    r"""Return a text as one line that can be shown: controls as escapes, the rest as it is.

    Escaped are control characters (ESC, line ends and tabs among them), what changes the direction
    of a line, what is invisible (a joiner, unless it joins an emoji or letters of a script that has
    them), surrogates, and code points without a meaning; of combining marks in a row only the first
    few stand. What is longer than ``most`` is cut, and says by how much. What is printable already,
    and short enough, is returned as it is.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    >>> printable("x" * 10, most=4)
    'xxxx… (+6 characters)'
    """
    gone = len(text) - most
    kept = text if gone <= 0 else text[:most]
    if not (kept.isprintable() if kept.isascii() else _USUAL.fullmatch(kept)):
        kept = "".join(_shown(kept))
    return kept if gone <= 0 else f"{kept}… (+{gone} characters)"


def printable_lines(text: str) -> list[str]:
    r"""Return a text of several lines, each of which can be shown.

    Only ``\n`` ends a line here: what else might is escaped.
    """
    lines = text.split("\n")
    more = len(lines) - TEXT_LINES
    found = [printable(line) for line in lines[:TEXT_LINES]]
    return [*found, f"… (+{more} lines)"] if more > 0 else found


def json_printable(text: str) -> str:
    r"""Return a JSON text with the same value, in which nothing is left that a terminal obeys.

    >>> json_printable('"a\u009b2J"')
    '"a\\u009b2J"'
    """
    harmless = "\x7f" not in text if text.isascii() else _USUAL.fullmatch(text)
    return text if harmless else _BEYOND_ASCII.sub(_json_run, text)


def _shown(text: str) -> Iterator[str]:
    marks = 0
    for at, letter in enumerate(text):
        if letter.isascii():
            marks = 0
            yield letter if letter.isprintable() else _escaped(letter)
            continue
        if marks <= _MARKS and _joins(text, at):
            yield letter
            continue
        category = unicodedata.category(letter)
        marks = marks + 1 if category[0] == "M" else 0
        yield _escaped(letter) if marks > _MARKS or _hides(letter, category) else letter


def _joins(text: str, at: int) -> bool:
    """Whether a letter is a joiner, and of what stands as it is; it ends no row of marks."""
    return _JOINER.match(text, at) is not None and unicodedata.category(text[at + 1])[0] != "M"


def _hides(letter: str, category: str) -> bool:
    if category == _SPACE:
        return False
    return not letter.isprintable() or _HIDDEN.match(letter) is not None


def _escaped(letter: str) -> str:
    code = ord(letter)
    if code < _BYTE:
        return _NAMED.get(letter) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _WORD else f"\\U{code:08x}"


def _json_run(found: re.Match[str]) -> str:
    shown, marks = [], 0
    for at, letter in enumerate(found[0]):
        if marks <= _MARKS and _joins(found[0], at):
            shown.append(letter)
            continue
        category = unicodedata.category(letter)
        marks = marks + 1 if category[0] == "M" else 0
        escaped = marks > _MARKS or _hides(letter, category)
        shown.append(_json_escaped(letter) if escaped else letter)
    return "".join(shown)


def _json_escaped(letter: str) -> str:
    code = ord(letter)
    if code < _WORD:
        return f"\\u{code:04x}"
    code -= _WORD
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
