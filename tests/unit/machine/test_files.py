from pathlib import Path

import pytest

from penstock.machine.files import last_lines, write_atomically


def test_a_file_is_written_with_its_directories_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "file"
    write_atomically(path, "text\n", mode=0o755)
    assert path.read_text() == "text\n"
    assert path.stat().st_mode & 0o777 == 0o755
    write_atomically(path, "other\n")
    assert path.read_text() == "other\n"
    assert [child.name for child in path.parent.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \udc80")
    assert path.read_text() == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def test_a_file_with_the_same_content_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "text")
    before = path.stat().st_ino
    write_atomically(path, "text")
    assert path.stat().st_ino == before


def test_the_last_lines_of_a_long_log_are_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n\n" for number in range(20_000)))
    assert last_lines(log, count=2) == ["line 19998", "line 19999"]
    assert last_lines(tmp_path / "none", count=2) == []
