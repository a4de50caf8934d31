from pyspark.sql import types as sql

from penstock.pipelines.lake.snapshot import types_of


def test_lists_maps_and_records_are_columns_as_all_others():
    text = sql.StringType()
    place = sql.StructType().add("city", text).add("at", sql.TimestampType())
    schema = (
        sql.StructType()
        .add("name", text, nullable=False)
        .add("count", sql.LongType())
        .add("amount", sql.DecimalType(38, 18))
        .add("tags", sql.ArrayType(text))
        .add("limits", sql.MapType(text, sql.DoubleType()))
        .add("place", place)
    )
    assert types_of(schema.json()) == {
        "name": "string",
        "count": "bigint",
        "amount": "decimal(38,18)",
        "tags": "array<string>",
        "limits": "map<string,double>",
        "place": "struct<city:string,at:timestamp>",
    }
