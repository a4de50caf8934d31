import pytest

from penstock.errors import ConfigurationError, FencedError
from penstock.pipelines.checkpoint.generations import Generations, Standing


class MemoryFiles:
    """Files that are a dict."""

    def __init__(self):
        self.kept = {}

    def names(self, directory):
        return [path.rpartition("/")[2] for path in self.kept if path.startswith(f"{directory}/")]

    def text(self, file):
        return self.kept[file]

    def write(self, file, text):
        self.kept[file] = text


def generations(files=None):
    return Generations(files or MemoryFiles(), "/checkpoints/app/count", name="count")


def test_a_pipeline_that_was_never_rebuilt_runs_from_the_directory_of_its_name():
    checkpoint, check = generations().running()
    assert checkpoint == "/checkpoints/app/count"
    check()


def test_a_standing_is_read_as_it_was_written():
    found = generations()
    standing = Standing(current=2).computing("p").switching().switched()
    found.write(standing)
    assert found.read() == standing
    assert standing == Standing(current=3, left=(2,), next=3)


def test_a_standing_of_a_newer_form_is_refused():
    files = MemoryFiles()
    files.write("/checkpoints/app/count~generations", '{"format": 2, "paused": true}')
    with pytest.raises(ConfigurationError) as refusal:
        generations(files).running()
    assert refusal.value.code == "checkpoint.newer"


def test_a_rebuild_that_begins_anew_takes_a_new_number_and_leaves_the_old_to_be_removed():
    standing = Standing().computing("p").computing("q")
    assert (standing.current, standing.next, standing.left) == (0, 2, (1,))
    assert standing.program == "q"
    assert standing.switching().switched().tidied().computing("r").next == 3


def test_the_old_generation_runs_on_while_the_next_is_computed_and_is_fenced_by_the_switch():
    found = generations()
    _, check = found.running()
    standing = Standing().computing("p")
    found.write(standing)
    check()
    found.running()
    found.write(standing.switching())
    with pytest.raises(FencedError, match="switching over"):
        check()
    with pytest.raises(FencedError, match="switching over"):
        found.running()
    found.write(standing.switching().switched())
    with pytest.raises(FencedError, match="was rebuilt"):
        check()
    checkpoint, check = found.running()
    assert checkpoint == "/checkpoints/app/count~1"
    check()
