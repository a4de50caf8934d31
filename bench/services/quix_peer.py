"""The benchmark's work in Quix Streams, run with the Python of its own environment.

``python quix_peer.py BOOTSTRAP GROUP WORK DIRECTORY``
"""

# ruff: noqa: ANN001, ANN201, ANN202 - Quix is not there when this is checked
# mypy: ignore-errors

import sys

from quixstreams import Application


def main():
    bootstrap, group, work, directory = sys.argv[1:]
    app = Application(
        broker_address=bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once" if work == "count" else "at-least-once",
        commit_interval=0.1,
        state_dir=directory,
        loglevel="WARNING",
    )
    frame = app.dataframe(app.topic("readings", value_deserializer="json"))
    if work == "count":
        frame.update(_count, stateful=True)
    else:
        out = app.topic(f"{group}.out", value_serializer="json")
        frame.apply(_convert).to_topic(out)
    app.run()


def _count(_value, state):
    state.set("total", state.get("total", 0) + 1)


def _convert(value):
    return {
        "device": value["device"],
        "fahrenheit": value["celsius"] * 1.8 + 32,
        "at": value["at"],
    }


if __name__ == "__main__":
    main()
