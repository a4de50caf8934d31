"""Java's properties files: the form in which JVM programs take their settings."""

from collections.abc import Mapping

__all__ = ["properties_text"]

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_UNIT_BYTES = 2


def properties_text(properties: Mapping[str, str]) -> str:
    """Return a properties file; names and values may hold any character."""
    lines = (
        f"{_escaped(name, sign=' :=#!')}={_value(text)}\n" for name, text in properties.items()
    )
    return "".join(lines)


def _value(text: str) -> str:
    """Return a value; spaces that it begins with would be taken for none of it."""
    rest = text.lstrip(" ")
    return "\\ " * (len(text) - len(rest)) + _escaped(rest)


def _escaped(text: str, *, sign: str = "") -> str:
    return "".join(_letter(letter, sign) for letter in text)


def _letter(letter: str, sign: str) -> str:
    if letter in _NAMED:
        return _NAMED[letter]
    if letter == "\\" or letter in sign:
        return f"\\{letter}"
    if " " <= letter <= "~":
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + _UNIT_BYTES] for at in range(0, len(units), _UNIT_BYTES))
    return "".join(f"\\u{pair.hex()}" for pair in pairs)
