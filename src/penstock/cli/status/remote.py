"""Runs on other machines, asked at the addresses where their status pages can be requested."""

import argparse
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from urllib.parse import urlsplit

import msgspec

from penstock.core.status.status import RunStatus, decode_status

__all__ = ["ask_runs", "read_run_address"]

_ASK_SECONDS = 3.0
_ASKED_AT_ONCE = 16
_MOST_BYTES = 64 << 20


def read_run_address(text: str) -> str:
    """Return the address of a status page, for the arguments of a verb."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as http://worker-2:9100")
    return text.rstrip("/")


def ask_runs(addresses: Sequence[str]) -> dict[str, RunStatus | str]:
    """Return the status of each run by its address, or why it does not answer; all at once."""
    if not addresses:
        return {}
    with ThreadPoolExecutor(min(len(addresses), _ASKED_AT_ONCE)) as executor:
        return dict(zip(addresses, executor.map(_ask, addresses), strict=True))


def _ask(address: str) -> RunStatus | str:
    try:
        # The scheme was looked at when the address was read.
        with urllib.request.urlopen(f"{address}/status", timeout=_ASK_SECONDS) as answer:  # noqa: S310
            return decode_status(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        return f"it answers {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
    except msgspec.MsgspecError:
        return "its answer is not a status of this version of Penstock"
