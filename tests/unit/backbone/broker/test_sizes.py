"""Sizes of topics are those of their files of records, over all brokers of the machine."""

from penstock.backbone.broker.sizes import sizes_on_disk


def test_sizes_are_added_by_partition_over_all_brokers_and_only_records_count(tmp_path):
    for node in (1, 2):
        for name, size in [("words-0", 100), ("words-1", 7), ("a-b.c-12", 3)]:
            folder = tmp_path / f"node-{node}" / "data" / name
            folder.mkdir(parents=True)
            (folder / "00000000000000000000.log").write_bytes(b"x" * size)
            (folder / "00000000000000000000.index").write_bytes(b"x" * 10_000)
        (tmp_path / f"node-{node}" / "data" / "meta.properties").write_text("x")
        (tmp_path / f"node-{node}" / "data" / "cleaner").mkdir()
    assert sizes_on_disk(tmp_path) == {"words": {0: 200, 1: 14}, "a-b.c": {12: 6}}
    assert sizes_on_disk(tmp_path / "nothing") == {}
