"""Text that would control a terminal, forge a row, hide or never end, and what may be left of it."""

import io
from unicodedata import category

ESCAPES = "\x1b]52;c;cHduZWQ=\x07\x1b[2J\x1b]0;PWNED\x07\x9b2J\x1bP+q\x1b\\\x08\x7f"
UNSEEN = "\u202etxt.exe\u2066\u200b\u200d\ufeff\u2060\u00ad\u061c\u115f\u3164\U000e0041\ue000\u0378"
BREAKS = "\r\nFORGED\tROW\x0b\x0c\x1c\x85\u2028FORGED\u2029FORGED"
MARKUP = (
    "[red]m[/red] [link=http://a]b[/link] <script>alert(1)</script> ]]> `x` #35; &amp; \\ % {0}"
)
FLOOD = "e" + "\u0301" * 200
WHOLE = f"evil{ESCAPES}{UNSEEN}{BREAKS}{MARKUP}{FLOOD}"
"""Everything that UTF-8 can hold."""
HOSTILE = f"{WHOLE}\ud800\udfff"
ENDLESS = WHOLE + "x" * 300_000

_MOST_MARKS = 8
_LONGEST = 250_000


class Tty(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


def harm_in(shown: str) -> list[str]:
    """Return what is left in a text for people that would do harm; tabs part cells."""
    found = [
        f"{letter!r} at {at}: {shown[max(0, at - 30) : at + 10]!r}"
        for at, letter in enumerate(shown)
        if letter not in "\n\t" and not letter.isprintable() and category(letter) != "Zs"
    ]
    found += [hidden for hidden in ("\u115f", "\u3164") if hidden in shown]
    if "\u0301" * (_MOST_MARKS + 1) in shown:
        found.append("a flood of combining marks")
    for line in shown.split("\n"):
        if line.startswith("FORGED"):
            found.append(f"a forged line: {line[:60]!r}")
        if len(line) > _LONGEST:
            found.append(f"a line of {len(line)} characters")
    return found
