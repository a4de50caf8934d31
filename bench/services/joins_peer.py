"""The joins of the benchmark as services: ``python joins_peer.py BOOTSTRAP APP WORK [SETTING...]``.

A setting is one of ``services``: ``state=disk``.
"""

import sys

from penstock_peer import serve

from penstock import App, record


@record(key="device", time="at")
class Reading:
    device: str
    celsius: float
    place: str
    at: int


@record(key="device")
class Setting:
    device: str
    limit: float
    owner: str


def application(name: str) -> App:
    """Return the application; its results begin with ``name``."""
    app = App(name)
    left = app.stream("left", Reading)
    right = app.stream("right", Reading)
    settings = app.table("settings", Setting)
    looked = left.join(settings, on="device").select(
        device="device", celsius="left.celsius", limit="settings.limit"
    )
    pairs = left.join(right, on="device", within="10s", lateness="10s").select(
        device="device", first="left.celsius", second="right.celsius"
    )
    app.stream(f"{name}.looked", looked, on="services")
    app.stream(f"{name}.pairs", pairs, on="services")
    return app


if __name__ == "__main__":
    bootstrap, name, work, *pairs = sys.argv[1:]
    serve(application(name), bootstrap, f"{name}.{work}.filling", pairs)
