"""Which settings are secrets by their names, and what must not stand in a text that is shown.

Settings of others (``spark.options``) have no type that says so: their names do.
"""

import re

__all__ = ["NAME_PATTERN", "TEXT_PATTERN", "names_secret", "without_secrets"]

NAME_PATTERN = (
    r"(?i)secret|passw|passphrase|token|credential|jaas|authorization"
    r"|(access|account|api|private|encryption|signing|keystore)[._-]?key|[._-]sas([._-]|$)"
    r"|[._-](pass|pwd|auth)$"
)
"""A pattern for names, and for values that name a secret inside; Python's and Java's."""

_WORDS = r"(password|passwd|pwd|secret|token|(account|access)[._-]?key)[\w.-]{0,40}"

TEXT_PATTERN = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)"
    rf"|(?i:{_WORDS}=|(?<=[?&])sig=)"
    # Possessive: Java calls itself for each turn of any other group.
    r"(\x22(?:[^\x22\\]|\\.)*+(\x22|\\?$)|\x27[^\x27]*+(\x27|$)|[^\s,;)}\x22]+)"
    rf"|(?i:{_WORDS}(\x22: ?\x22[^\x22]*+(\x22|$)|\x27: ?\x27[^\x27]*+(\x27|$)))"
    r"|(?<=://)[^\s/@:]{1,256}:[^\s/]{1,256}(?=@)"
)
"""A pattern for secrets in running text: keys, ``password="..."``, the login of an address."""

_NAME, _TEXT = re.compile(NAME_PATTERN), re.compile(TEXT_PATTERN)
_INSIDE = re.compile(rf"(?i){_WORDS}=|[?&]sig=|://[^\s/@:]{{1,256}}:[^\s/]{{1,256}}@")


def names_secret(name: str, value: str = "") -> bool:
    """Return whether a setting is a secret, by its name or by what its value sets inside.

    >>> names_secret("spark.hadoop.fs.s3a.secret.key"), names_secret("spark.sql.shuffle.partitions")
    (True, False)
    >>> names_secret("spark.driver.extraJavaOptions", "-Dhttp.proxyPassword=open")
    True
    """
    return _NAME.search(name) is not None or _INSIDE.search(value) is not None


def without_secrets(text: str) -> str:
    """Return a text in which no secret stands.

    >>> without_secrets('PlainLoginModule required username="me" password="open";')
    'PlainLoginModule required username="me" ***;'
    """
    return _TEXT.sub("***", text)
