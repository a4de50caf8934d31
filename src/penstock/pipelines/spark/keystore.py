"""The client's TLS key for Spark's Kafka client: in a file of the owner's, not in the options.

Options of a source stand in Spark's plans, and so in traces. A key that is encrypted is decrypted
here: Kafka's own reader of encrypted PEM does not know the way that every tool uses today (PBES2),
and says nothing of it.
"""

import base64
import hashlib
import textwrap
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from penstock.backbone.client.connection import Connection, is_encrypted
from penstock.errors import ConfigurationError
from penstock.machine.files import write_atomically
from penstock.pipelines.spark.cluster import on_one_machine
from penstock.pipelines.spark.pkcs8 import read_pbes2

__all__ = ["key_store"]

_BEGIN, _END = "-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----END ENCRYPTED PRIVATE KEY-----"
_OWNER_ONLY = 0o600
_PEM_WIDTH = 64


def key_store(connection: Connection) -> Path | None:
    """Return a file with the client's key and certificates; None: give them as text.

    The file is in the session's scratch directory, for the owner alone, and goes with it. Executors
    on other machines do not see it: they get the key as text, which must not be encrypted then.
    ConfigurationError (``kafka.security``) where the key cannot be used.
    """
    settings = connection.settings
    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - there is no public way
    scratch = getattr(getattr(context, "_gateway", None), "scratch", None)
    if not settings.tls_key_file or scratch is None:
        return None
    key = connection.java_key()
    if not on_one_machine(context.master):
        if is_encrypted(key):
            raise ConfigurationError(
                f"{settings.tls_key_file} is encrypted, and {context.master} is on other machines",
                code="kafka.security",
                detail="executors get the key from the driver, and cannot decrypt it",
                hint="give pipelines a key without a password, which only the owner can read",
            )
        return None
    if is_encrypted(key):
        password = settings.tls_key_password.reveal()
        key = _decrypted(key, password, context, file=settings.tls_key_file)
    text = f"{key.rstrip()}\n{connection.certificates()}"
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path: Path = scratch / f"key-{name}.pem"
    write_atomically(path, text, mode=_OWNER_ONLY)
    return path


def _decrypted(key: str, password: str, context: Any, *, file: str) -> str:
    """Return a key of PKCS#8 in PEM without its password."""
    body = key.partition(_BEGIN)[2].partition(_END)[0]
    jvm = context._jvm  # noqa: SLF001 - there is no public way
    crypto = jvm.javax.crypto
    try:
        der = base64.b64decode(body)
        if (found := read_pbes2(der)) is not None:
            secret = crypto.spec.SecretKeySpec(found.key(password), found.cipher)
            cipher = crypto.Cipher.getInstance(f"{found.cipher}/CBC/PKCS5Padding")
            vector = crypto.spec.IvParameterSpec(found.vector)
            cipher.init(crypto.Cipher.DECRYPT_MODE, secret, vector)
            plain = bytes(cipher.doFinal(found.data))
        else:  # an older way, which Java knows by its name
            info = crypto.EncryptedPrivateKeyInfo(der)
            made = crypto.SecretKeyFactory.getInstance(info.getAlgName())
            letters = jvm.java.lang.String(password).toCharArray()
            secret = made.generateSecret(crypto.spec.PBEKeySpec(letters))
            cipher = crypto.Cipher.getInstance(info.getAlgName())
            cipher.init(crypto.Cipher.DECRYPT_MODE, secret, info.getAlgParameters())
            plain = bytes(info.getKeySpec(cipher).getEncoded())
    except (Py4JJavaError, ValueError) as error:
        why = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        raise ConfigurationError(
            f"the key in {file} cannot be decrypted",
            code="kafka.security",
            detail=f"{why}; the password may be wrong",
            hint="check tls_key_password, or run: openssl pkcs8 -topk8 -v2 aes-256-cbc",
        ) from None
    lines = textwrap.wrap(base64.b64encode(plain).decode(), _PEM_WIDTH)
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
