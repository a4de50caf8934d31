"""Tokens: who calls is found by the digest of what they send, and a bad file changes nothing."""

import hashlib
import os
import time

import pytest

from penstock.errors import ConfigurationError
from penstock.serving.http import watched
from penstock.serving.http.caller import ANYBODY, Caller
from penstock.serving.http.callers import Callers, read_callers


def entry(name, token, roles=("meter",)):
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f'[callers.{name}]\nsha256 = "{digest}"\nroles = {list(roles)!r}\n'


def test_a_caller_is_found_by_the_token_alone(tmp_path):
    file = tmp_path / "tokens.toml"
    file.write_text(entry("ann", "secret") + entry("ben", "other", ()))
    known = Callers(str(file))
    assert known.find("Bearer secret") == Caller("ann", frozenset({"meter"}))
    assert known.find("bearer other") == Caller("ben", frozenset())
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic secret",
        "secret",
        "Bearer secret2",
        "Bearer \udcff",
    ):
        assert known.find(wrong) is None


def test_a_caller_has_claims_and_a_token_runs_out(tmp_path, monkeypatch):
    file = tmp_path / "tokens.toml"
    more = 'claims = { sub = "ann", lists = ["home"] }\nexpires = 2030-01-01T00:00:00Z\n'
    file.write_text(entry("ann", "secret") + more)
    known = Callers(str(file))
    ann = known.find("Bearer secret")
    assert ann is not None
    assert ann.claims == {"sub": "ann", "lists": ["home"]}
    assert ann.expires_at is not None
    monkeypatch.setattr(time, "time", lambda: ann.expires_at)
    assert known.find("Bearer secret") is None


def test_without_a_file_everybody_is_anybody():
    assert Callers("").find(None) == ANYBODY


def test_a_change_of_the_file_is_seen_and_a_bad_one_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(watched, "_LOOK_SECONDS", 0.0)
    file = tmp_path / "tokens.toml"
    file.write_text(entry("ann", "secret"))
    known = Callers(str(file))
    file.write_text(entry("ben", "other"))
    os.utime(file, (1, 1))
    assert known.find("Bearer secret") is None
    assert known.find("Bearer other") is not None
    file.write_text("not toml")
    os.utime(file, (2, 2))
    assert known.find("Bearer other") is not None
    assert "cannot be used" in known.trouble


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "x = 1",
        "callers = 1",
        "[callers.a]\ntoken = 'x'",
        "[callers.a]\nsha256 = 'x'",
        "[callers.a]\nsha256 = 'zz'",
        entry("a", "x") + entry("b", "x"),
        f"[callers.a]\nsha256 = '{'0' * 64}'\nroles = 'meter'",
        f"[callers.a]\nsha256 = '{'0' * 64}'\nclaims = 'meter'",
        f"[callers.a]\nsha256 = '{'0' * 64}'\nexpires = 'never'",
    ],
)
def test_a_file_that_is_none_is_refused(text):
    with pytest.raises(ConfigurationError) as raised:
        read_callers(text, file="tokens.toml")
    assert raised.value.code == "serving.tokens"
