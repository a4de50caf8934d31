import base64
import subprocess

import pytest

from penstock.pipelines.spark.pkcs8 import read_pbes2


@pytest.fixture(scope="module")
def key():
    made = subprocess.run(
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        capture_output=True,
        check=True,
    )
    return made.stdout


def encrypted(key, *options):
    done = subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-passout", "pass:open", *options],
        input=key,
        capture_output=True,
        check=True,
    )
    return base64.b64decode(b"".join(done.stdout.splitlines()[1:-1]))


@pytest.mark.parametrize(
    ("options", "cipher", "digest"),
    [
        (["-v2", "aes-256-cbc"], ("AES", 32), "sha256"),
        (["-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512"], ("AES", 16), "sha512"),
        (["-v2", "des3", "-v2prf", "hmacWithSHA1"], ("DESede", 24), "sha1"),
    ],
)
def test_how_a_key_is_encrypted_is_read(key, options, cipher, digest):
    found = read_pbes2(encrypted(key, *options))
    assert (found.cipher, found.key_bytes) == cipher
    assert found.digest == digest
    assert len(found.key("open")) == found.key_bytes
    assert len(found.data) % len(found.vector) == 0


def test_what_is_encrypted_otherwise_or_cut_or_no_key_is_nothing(key):
    whole = encrypted(key)
    assert read_pbes2(whole) is not None
    for cut in range(len(whole)):
        assert read_pbes2(whole[:cut]) is None
    assert read_pbes2(b"") is None
    assert read_pbes2(b"\x30" * 10_000) is None
    assert read_pbes2(b"\xff" * 100) is None
