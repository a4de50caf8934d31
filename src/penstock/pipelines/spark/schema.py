"""Record types in Spark's words.

=============  ==========================================================
in the record  in the DataFrame
=============  ==========================================================
int, float     ``bigint``, ``double``
text, choice   ``string``
instant        ``timestamp`` (the zone it was written with is not kept)
event time     ``timestamp``, also where the record holds milliseconds
decimal        ``decimal(38,18)``
list, map      ``array``, ``map`` from ``string``
record         ``struct``
=============  ==========================================================
"""

from pyspark.sql import types as sql

from penstock.core.records.schema import Choice, FieldType, ListOf, MapOf, Nested, Scalar, Schema

__all__ = ["DECIMAL", "frame_type", "holds_milliseconds", "value_type"]

DECIMAL = sql.DecimalType(38, 18)

_SCALARS: dict[str, sql.DataType] = {
    "bool": sql.BooleanType(),
    "int": sql.LongType(),
    "float": sql.DoubleType(),
    "text": sql.StringType(),
    "bytes": sql.BinaryType(),
    "instant": sql.TimestampType(),
    "date": sql.DateType(),
    "decimal": DECIMAL,
}


def frame_type(schema: Schema) -> sql.StructType:
    """Return the columns of a DataFrame that holds such records."""
    return sql.StructType(
        [
            sql.StructField(
                field.name,
                sql.TimestampType()
                if holds_milliseconds(schema, field.name)
                else value_type(field.type),
                nullable=field.nullable,
            )
            for field in schema.fields
        ]
    )


def holds_milliseconds(schema: Schema, name: str) -> bool:
    """Whether a field is the event time, held as an int of milliseconds since the epoch."""
    if name != schema.time:
        return False
    field = schema.field(name)
    return field is not None and field.type == Scalar("int")


def value_type(kind: FieldType) -> sql.DataType:
    """Return the type of a value, inside a record or at its top."""
    match kind:
        case Scalar(name):
            return _SCALARS[name]
        case Choice():
            return sql.StringType()
        case ListOf(item):
            return sql.ArrayType(value_type(item), containsNull=False)
        case MapOf(value):
            return sql.MapType(sql.StringType(), value_type(value), valueContainsNull=False)
        case Nested(schema):
            return sql.StructType(
                [
                    sql.StructField(field.name, value_type(field.type), nullable=field.nullable)
                    for field in schema.fields
                ]
            )
