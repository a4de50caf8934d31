"""One version of a model as a record: its parameters, their shape, a hash, and where they are from.

Parameters are a record of a type that the application declares, as JSON. Nothing is ever unpickled.
The hash covers everything that scoring depends on, so a version that was cut, mixed up or edited is
told from a whole one. The shape is a hash of the schema of the parameters: an application that
expects other parameters does not take them for its own.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import RecordType, record, record_type
from penstock.errors import DataError

__all__ = ["MOST_BYTES", "ModelVersion", "opened", "sealed", "shape_of"]

T = TypeVar("T")

MOST_BYTES = 900_000
"""How large the parameters may be: a record of a table takes a mebibyte by default."""


@record(key=("model", "version"))
class ModelVersion:
    """One version of a model; a version never changes once it is published.

    Declare a table of it, publish into the table, and read it with ``broadcast``.

    Examples:
        >>> from penstock.models import ModelVersion
        >>> models = app.table("models", ModelVersion)
    """

    model: str
    version: int
    shape: str
    sha256: str
    parameters: str
    trained_on: str
    """What it was made of, in the application's own words: offsets, files, a seed."""
    figures: dict[str, float]
    """How good it was, by the name of each measure."""
    published_at: datetime | None = None


def sealed(
    model: str,
    version: int,
    parameters: Any,
    *,
    trained_on: str = "",
    figures: Mapping[str, float] | None = None,
    published_at: datetime | None = None,
) -> ModelVersion:
    """Return a version to publish, with its shape and hash.

    ``parameters`` is an object of a record type. It raises a TypeError if it is none, and a
    DataError if its type does not take the values, or if it is larger than `MOST_BYTES`.

    Examples:
        >>> from penstock.models import opened, sealed
        >>> @record()
        ... class Line:
        ...     slope: float
        ...     offset: float
        >>> version = sealed("heat", 3, Line(0.5, 20.0), trained_on="readings, offsets 0 to 900")
        >>> opened(version, Line)
        Line(slope=0.5, offset=20.0)
    """
    kind = _type_of(type(parameters))
    if version < 1:
        raise DataError("versions are numbered from 1", code="model.version")
    codec = _codec(kind)
    encoded = codec.encode(parameters)
    codec.decode(encoded)  # which refuses what no reader would take
    text = encoded.decode()
    shape = shape_of(type(parameters))
    return ModelVersion(
        model=model,
        version=version,
        shape=shape,
        sha256=_hash(model, version, shape, text),
        parameters=text,
        trained_on=trained_on,
        figures=dict(figures or {}),
        published_at=published_at,
    )


def opened(version: ModelVersion, kind: type[T]) -> T:
    """Return the parameters of a version.

    A DataError says why they are not to be used: ``model.corrupt`` if they are not what was
    published, ``model.shape`` if they are of another type, ``model.parameters`` if they do not
    decode.

    Examples:
        >>> from penstock.models import opened, sealed
        >>> opened(sealed("heat", 1, Alarm("boiler", "hot")), Alarm)
        Alarm(device='boiler', text='hot')
    """
    named = f"version {version.version} of model {version.model!r}"
    expected = _hash(version.model, version.version, version.shape, version.parameters)
    if version.sha256 != expected:
        text = f"{named} is not what was published: its hash is another one"
        raise DataError(text, code="model.corrupt", hint="publish it anew, with a new number")
    if version.shape != shape_of(kind):
        text = f"{named} has parameters of another shape than {kind.__name__}"
        raise DataError(text, code="model.shape", hint="train it with this application's code")
    try:
        decoded: T = _codec(_type_of(kind)).decode(version.parameters.encode())
    except DataError as error:
        raise DataError(f"{named}: {error.message}", code="model.parameters") from error
    return decoded


def shape_of(kind: type) -> str:
    """Return a hash of the schema of parameters: types with other fields have another hash.

    Examples:
        >>> from penstock.models import shape_of
        >>> shape_of(Alarm) == shape_of(Reading)
        False
    """
    schema = msgspec.json.encode(_type_of(kind).schema.to_json())
    return str(sha256(schema).hexdigest()[:16])


def _hash(model: str, version: int, shape: str, parameters: str) -> str:
    """Return the hash of all four, each with its length: no two lists of them are one."""
    parts = [part.encode() for part in (model, str(version), shape, parameters)]
    whole = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return str(sha256(whole).hexdigest())


def _type_of(kind: type) -> RecordType[Any]:
    found: RecordType[Any] | None = record_type(kind)
    if found is None:
        raise TypeError(f"{kind.__name__} is not a record type: put @record() above the class")
    return found


def _codec(kind: RecordType[Any]) -> JsonCodec[Any]:
    return JsonCodec(kind, max_bytes=MOST_BYTES)
