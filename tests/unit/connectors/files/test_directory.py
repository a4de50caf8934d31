"""The files of a directory: every format, compressed or not, broken, changed, added, and hostile."""

import gzip
import os

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock import App, record
from penstock.connectors import files_in
from penstock.connectors.source.intake import Intake
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, DataError
from penstock.testing import try_source


@record()
class Reading:
    city: str
    celsius: float
    note: str | None = None


def all_of(directory, **options):
    return try_source(files_in(directory, ends=True, settled="0s", **options))


def write(path, text: bytes) -> None:
    if path.suffix == ".gz":
        text = gzip.compress(text)
    if path.suffix == ".zst":
        text = pa.compress(text, codec="zstd", asbytes=True)
    path.write_bytes(text)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_lines_come_once_from_any_place_on_however_they_are_compressed(tmp_path, ending):
    lines = [f"line {n} ä".encode() for n in range(12_000)]
    write(tmp_path / f"a.txt{ending}", b"\n".join(lines))
    write(tmp_path / f"b.txt{ending}", b"one\r\n\r\ntwo\n")
    assert all_of(tmp_path) == {
        f"a.txt{ending}": lines,
        f"b.txt{ending}": [b"one", b"", b"two"],
    }


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_rows_of_csv_have_the_names_of_the_first_row(tmp_path, ending):
    text = '\ufeffcity,celsius,note\n"Oslo, NO",1.5,"two\nlines"\nRome,20,\n' + "x,1,\n" * 6_000
    write(tmp_path / f"a.csv{ending}", text.encode())
    (found,) = all_of(tmp_path, format="csv").values()
    assert found[0] == {"city": "Oslo, NO", "celsius": "1.5", "note": "two\nlines"}
    assert (found[1]["city"], len(found)) == ("Rome", 6_002)


def test_rows_of_parquet_come_from_any_place_on(tmp_path):
    rows = [{"city": f"c{n}", "celsius": float(n)} for n in range(7_000)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=1_500)
    assert all_of(tmp_path, format="parquet") == {"a.parquet": rows}


def test_rows_become_records_and_what_fits_nothing_is_told(tmp_path):
    text = b"city,celsius,note\nOslo,1.5,\nRome,warm,\nParis,2\nBern,\xff,\n\xffx,1,\n"
    write(tmp_path / "a.csv", text)
    app = App("weather")
    connector = files_in(tmp_path, format="csv", settled="0s")
    intake = Intake(app.source("s", connector, into=app.stream("readings", Reading)))
    reading = connector.open("a.csv", None)
    items = reading.read()
    reading.close()
    assert intake.take(items[0]).value == b'{"city":"Oslo","celsius":1.5,"note":null}'
    for item in items[1:]:
        with pytest.raises(DataError):
            intake.take(item)
    assert len(items) == 5


def test_a_broken_file_gives_what_is_before_the_break_and_one_dead_letter(tmp_path):
    whole = gzip.compress(b"\n".join(os.urandom(20).hex().encode() for _ in range(5_000)))
    (tmp_path / "a.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.gz").write_bytes(b"no gzip")
    found = all_of(tmp_path)
    assert len(found["a.gz"]) > 1_000
    assert found["b.gz"] == [b"b.gz"]
    reading = files_in(tmp_path, settled="0s").open("b.gz", None)
    (item,) = reading.read()
    assert "b.gz is broken behind item 0" in item.fault().message
    again = files_in(tmp_path, settled="0s").open("b.gz", reading.position_after(item))
    assert (again.read(), again.ended) == ([], True)
    reading.close()
    again.close()
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    assert len(all_of(tmp_path, pattern="c*", format="parquet")["c.parquet"]) == 1


def test_a_long_line_is_cut_and_told_and_the_next_one_is_whole(tmp_path):
    write(tmp_path / "a", b"x" * 5_000 + b"\nok\n")
    reading = files_in(tmp_path, settled="0s", max_line=100).open("a", None)
    long, fine = reading.read()
    assert (len(long.content), "more than the 100 bytes" in long.fault().message) == (100, True)
    assert (fine.content, fine.fault()) == (b"ok", None)
    reading.close()


def test_only_complete_files_count_and_one_that_changes_is_refused(tmp_path):
    for name in (".hidden", "_temporary", "half.part", "half.tmp", "b", "a"):
        (tmp_path / name).write_text("one\n")
    (tmp_path / "directory").mkdir()
    source = files_in(tmp_path, settled="0s")
    assert (source.splits(), source.grows) == (["a", "b"], True)
    assert files_in(tmp_path, settled="1h").splits() == []
    reading = source.open("a", None)
    (item,) = reading.read()
    position = reading.position_after(item)
    reading.close()
    (tmp_path / "a").write_text("two\nthree\n")
    with pytest.raises(ConfigurationError, match="changed although it was there"):
        source.open("a", position)
    (tmp_path / "c").write_text("new\n")
    assert source.splits() == ["a", "b", "c"]
    for odd in ("../a", "x/../a"):
        with pytest.raises(ConfigurationError):
            source.open(odd, None)
    with pytest.raises(ConfigurationError, match="is not a position of a file"):
        source.open("a", "7")


@pytest.mark.parametrize(
    "options",
    [{"directory": 3}, {"pattern": "a/b"}, {"pattern": ""}, {"format": "xml"}, {"ends": 1},
     {"settled": "soon"}, {"max_line": 0}],
)  # fmt: skip
def test_each_wrong_option_is_a_problem_of_the_application(options):
    app = App("weather")
    app.source("s", files_in(**{"directory": "in", **options}), into=app.stream("r", Reading))
    assert [problem.code for problem in check(app.graph)] == ["source.option"]
