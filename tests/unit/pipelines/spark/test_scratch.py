from pathlib import Path

from penstock.pipelines.spark.scratch import Scratch


def test_a_new_scratch_directory_removes_those_of_dead_processes(tmp_path: Path):
    dead = tmp_path / "old-abc"
    dead.mkdir()
    (dead / "file").write_text("left behind")
    (dead / "owner.lock").touch()

    fresh = Scratch(tmp_path, name="new")

    assert not dead.exists()
    assert fresh.path.is_dir()
    fresh.remove()
    assert not fresh.path.exists()


def test_the_scratch_directory_of_a_living_owner_stays(tmp_path: Path):
    one = Scratch(tmp_path, name="same")

    other = Scratch(tmp_path, name="same")

    assert one.path.is_dir()
    assert other.path != one.path
    one.remove()
    other.remove()
