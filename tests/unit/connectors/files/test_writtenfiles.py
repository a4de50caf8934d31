"""Files of CSV and Parquet, compressed or not, hold what was written, once."""

import csv
import gzip
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal

import pytest
from pyarrow import parquet

from penstock import App, record
from penstock.connectors import Row, csv_files, files_in, json_files, parquet_files
from penstock.connectors.source.intake import Intake
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError
from penstock.testing import try_sink, try_source


@record()
class Inner:
    x: int


@record()
class Order:
    id: str
    total: Decimal
    at: datetime
    day: date
    weight: float
    kind: Literal["new", "old"]
    seal: bytes
    lines: list[Inner]
    words: dict[str, int]
    fast: bool = True
    note: str | None = None


CODEC = JsonCodec(record_type(Order))
AT = datetime(2026, 11, 19, 20, 30, 0, 123456, tzinfo=UTC)
HOSTILE = '"=1+1",\n\r; ö\0\u2028'


def order(number: int, **more) -> Order:
    given = {
        "id": f"o{number}", "total": Decimal("1.5"), "at": AT, "day": date(2026, 2, 28),
        "weight": 0.1, "kind": "new", "seal": b"\0\xff", "lines": [Inner(number)],
        "words": {"ä": 1}, **more,
    }  # fmt: skip
    return Order(**given)


SOME = [order(0, id=HOSTILE, note=""), *(order(n, note=f"n{n}") for n in range(1, 60))]


def whole(connector, directory: Path) -> list[Path]:
    app = App("shop")
    sink = app.sink("s", connector, reads=app.stream("orders", Order))
    writer = connector.open(sink)
    writer.write(0, [Row(each, CODEC.encode(each), n) for n, each in enumerate(SOME)], len(SOME))
    assert writer.positions() == {0: len(SOME)}
    writer.close()
    return sorted(directory.glob("[!.]*"))


def test_columns_of_parquet_have_the_types_of_the_fields(tmp_path):
    (path,) = whole(parquet_files(tmp_path), tmp_path)
    assert path.suffix == ".parquet"
    found = parquet.read_table(path)
    assert str(found.schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert (found.schema.field("id").nullable, found.schema.field("note").nullable) == (False, True)
    first = found.to_pylist()[0]
    assert first == {
        "id": HOSTILE, "total": Decimal("1.5"), "at": AT, "day": date(2026, 2, 28), "weight": 0.1,
        "kind": "new", "seal": b"\0\xff", "lines": [{"x": 0}], "words": [("ä", 1)], "fast": True,
        "note": "",
    }  # fmt: skip


@pytest.mark.parametrize("compress", ["none", "gzip"])
def test_rows_of_csv_can_be_read_by_others_whatever_is_in_them(tmp_path, compress):
    (path,) = whole(csv_files(tmp_path, compress=compress), tmp_path)
    data = path.read_bytes()
    text = (gzip.decompress(data) if compress == "gzip" else data).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert (rows[0]["id"], rows[0]["total"], rows[0]["lines"]) == (HOSTILE, "1.5", '[{"x":0}]')
    assert (rows[1]["at"], rows[1]["fast"], rows[1]["note"]) == (
        "2026-11-19T20:30:00.123456Z",
        "true",
        "n1",
    )
    assert len(rows) == len(SOME)


@record()
class Flat:
    id: str
    count: int
    at: datetime


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (csv_files, "csv"),
        (parquet_files, "parquet"),
        (json_files, "json"),
        (lambda path: json_files(path, compress="gzip"), "json"),
    ],
)
def test_files_pass_the_trials_as_a_sink_and_as_a_source(tmp_path, make, kind):
    some = [Flat(f"f{n}", n, AT) for n in range(80)]
    reading = files_in(tmp_path, format=kind, ends=True, settled="0s")
    app = App("shop")
    intake = Intake(app.source("s", reading, into=app.stream("flat", Flat)))

    def outside():
        for name in reading.splits():
            opened = reading.open(name, None)
            for item in opened.read():
                yield Flat(**{**json.loads(intake.take(item).value), "at": AT})
            opened.close()

    def clear():
        for path in tmp_path.glob("[!.]*"):
            path.unlink()

    try_sink(make(tmp_path), some, outside=outside, clear=clear, runs=2)
    assert sum(len(each) for each in try_source(reading, runs=2).values()) == 80


@pytest.mark.parametrize("make", [csv_files, json_files, parquet_files])
def test_each_wrong_option_is_a_problem_of_the_application(make):
    for options in ({"directory": 3}, {"every": "0s"}, {"size": 0}, {"rows": 0}):
        app = App("shop")
        app.sink("s", make(**{"directory": "out", **options}), reads=app.stream("flat", Flat))
        assert [problem.code for problem in check(app.graph)] == ["source.option"]


def test_a_directory_that_cannot_be_made_is_told_when_it_is_tried(tmp_path):
    app = App("shop")
    (tmp_path / "file").write_text("")
    fine = csv_files(tmp_path / "out" / "deep")
    sink = app.sink("s", fine, reads=app.stream("flat", Flat))
    assert "will be made" in fine.attempt(sink)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        csv_files(tmp_path / "file" / "out").attempt(sink)
    assert not (tmp_path / "out").exists()
