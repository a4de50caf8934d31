"""JSON Web Tokens: the key decides the algorithm, and what is not exactly right is nobody's."""

import base64
import hashlib
import hmac
import json
import os
import time
from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from penstock.errors import ConfigurationError
from penstock.serving.http import watched
from penstock.serving.http.callers import Callers
from penstock.serving.http.keys import TokenKeys, TokenRules

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - what is refused
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
RULES = TokenRules(audience="door", issuer="https://id.example", roles="realm.roles")


def public(key, kid, **more):
    kinds = ((rsa.RSAPrivateKey, RSAAlgorithm), (ec.EllipticCurvePrivateKey, ECAlgorithm))
    to_jwk = next((kind.to_jwk for of, kind in kinds if isinstance(key, of)), OKPAlgorithm.to_jwk)
    return json.loads(to_jwk(key.public_key())) | {"kid": kid, **more}


def write(file, *keys):
    file.write_text(json.dumps({"keys": list(keys)}))


def known(tmp_path, *keys, rules=RULES):
    file = tmp_path / "jwks.json"
    write(file, *(keys or (public(RSA, "r"), public(CURVE, "c"), public(EDWARDS, "e"))))
    return TokenKeys(file, rules)


def claims(**more):
    found = {
        "sub": "ann",
        "aud": ["other", "door"],
        "iss": "https://id.example",
        "exp": time.time() + 60,
        "realm": {"roles": ["meter", 7, "reader"]},
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


def token(key=RSA, alg="RS256", kid="r", headers=None, **more):
    return jwt.encode(claims(**more), key, alg, {"kid": kid, **(headers or {})})


def test_a_good_token_has_its_caller_with_roles_and_claims(tmp_path):
    keys = known(tmp_path)
    for key, alg, kid in ((RSA, "RS256", "r"), (CURVE, "ES256", "c"), (EDWARDS, "EdDSA", "e")):
        for _ in range(2):
            ann = keys.find(token(key, alg, kid))
            assert ann is not None
            assert (ann.name, ann.roles) == ("jwt:ann", {"meter", "reader"})
            assert ann.claims["realm"] == {"roles": ["meter", 7, "reader"]}
    words = TokenKeys(tmp_path / "jwks.json", TokenRules(audience="door", roles="scope"))
    ann = words.find(token(scope="meter reader"))
    assert ann is not None
    assert ann.roles == {"meter", "reader"}
    assert words.find(token()).roles == frozenset()


def by_hand(head, body, sign):
    def text(part):
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")

    signed = text(head) + b"." + text(body)
    return (signed + b"." + base64.urlsafe_b64encode(sign(signed)).rstrip(b"=")).decode()


def with_public_key_as_secret(kid="r"):
    """The classic confusion: the public key is no secret, and is taken for one."""
    pem = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = {"alg": "HS256", "kid": kid}
    return by_hand(head, claims(), lambda signed: hmac.digest(pem, signed, hashlib.sha256))


WRONG = {
    "it has expired": lambda: token(exp=time.time() - 31),
    "it is not good yet": lambda: token(nbf=time.time() + 60),
    "for somebody else": lambda: token(aud="other"),
    "for nobody": lambda: token(aud=None),
    "of another issuer": lambda: token(iss="https://evil.example"),
    "of no issuer": lambda: token(iss=None),
    "without an end": lambda: token(exp=None),
    "without a subject": lambda: token(sub=None),
    "with an empty subject": lambda: token(sub=""),
    "with a long subject": lambda: token(sub="a" * 300),
    "not signed": lambda: by_hand({"alg": "none", "kid": "r"}, claims(), lambda _: b""),
    "signed with the public key": with_public_key_as_secret,
    "of another algorithm of the key": lambda: token(alg="RS512"),
    "of the algorithm of another key": lambda: token(CURVE, "ES256", "r"),
    "of an unknown key": lambda: token(kid="x"),
    "of a key without a name": lambda: jwt.encode(claims(), RSA, "RS256"),
    "of a name that is none": lambda: by_hand({"alg": "RS256", "kid": ["r"]}, {}, lambda _: b"x"),
    "of somebody else's key": lambda: token(
        rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ),
    "with a key of its own": lambda: token(CURVE, "ES256", headers={"jwk": public(CURVE, "r")}),
    "with what is critical": lambda: token(headers={"crit": ["x"], "x": 1}),
    "changed": lambda: token()[:-4] + "AAAA",
    "cut": lambda: token()[:-40],
    "too long": lambda: token(more="x" * 9000),
    "of other letters": lambda: token() + "\udcff",
    "no token": lambda: "a.b.c",
    "nothing": lambda: "..",
    "deep": lambda: base64.urlsafe_b64encode(b"[" * 5000).decode() + ".e30.AA",
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_a_token_that_is_not_exactly_right_is_nobodys(tmp_path, make, caplog):
    sent = make()
    assert known(tmp_path).find(sent) is None
    assert "a token is not good" in caplog.text
    assert sent not in caplog.text or len(sent) < 10


def test_clocks_may_be_apart_by_the_leeway_and_an_end_ends_a_token_that_is_known(
    tmp_path, monkeypatch
):
    keys = known(tmp_path)
    assert keys.find(token(exp=time.time() - 20)) is not None
    assert keys.find(token(nbf=time.time() + 20)) is not None
    good = token(exp=time.time() + 5)
    assert keys.find(good) is not None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 36)
    assert keys.find(good) is None


def test_keys_rotate_and_a_bad_file_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(watched, "_LOOK_SECONDS", 0.0)
    keys, file = known(tmp_path), tmp_path / "jwks.json"
    old, new = token(), token(CURVE, "ES256", "next")
    assert keys.find(old) is not None
    assert keys.find(new) is None
    write(file, public(RSA, "r"), public(CURVE, "next"))
    os.utime(file, (1, 1))
    assert keys.find(old) is not None
    assert keys.find(new) is not None
    write(file, public(CURVE, "next"))
    os.utime(file, (2, 2))
    assert keys.find(old) is None, (
        "a key that has left is good for nothing, also for what was known"
    )
    file.write_text("{")
    os.utime(file, (3, 3))
    assert keys.find(new) is not None
    assert "cannot be used" in keys.trouble


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"keys": {}}',
        '{"keys": []}',
        '{"keys": [1]}',
        '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
        '{"keys": [{"kty": "quantum"}]}',
        json.dumps({"keys": [json.loads(RSAAlgorithm.to_jwk(RSA))]}),
        json.dumps({"keys": [public(SMALL, "s")]}),
        json.dumps({"keys": [public(RSA, "r"), public(CURVE, "r")]}),
        json.dumps({"keys": [public(RSA, "r", use="enc")]}),
        json.dumps({"keys": [public(RSA, "r", alg="HS256")]}),
    ],
)
def test_a_file_without_public_keys_for_signatures_is_refused(tmp_path, text):
    (tmp_path / "jwks.json").write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        TokenKeys(tmp_path / "jwks.json", RULES)
    assert raised.value.code == "serving.jwks"


def test_keys_without_an_audience_are_refused(tmp_path):
    with pytest.raises(ConfigurationError) as raised:
        known(tmp_path, rules=TokenRules(audience=""))
    assert raised.value.code == "serving.jwt"


def test_callers_of_a_file_and_of_tokens_stand_beside_each_other(tmp_path):
    digest = hashlib.sha256(b"secret").hexdigest()
    (tmp_path / "tokens.toml").write_text(f'[callers.ann]\nsha256 = "{digest}"\n')
    both = Callers(str(tmp_path / "tokens.toml"), known(tmp_path))
    assert both.find("Bearer secret").name == "ann"
    assert both.find(f"Bearer {token()}").name == "jwt:ann"
    for wrong in (f"Basic {token()}", token(), "Bearer", None, "Bearer other"):
        assert both.find(wrong) is None
    alone = Callers("", known(tmp_path, rules=TokenRules(audience="door", leeway=timedelta())))
    assert not alone.open
    assert alone.find(None) is None
