"""How Hypothesis is used here: by what holds, never by how long an example took."""

from hypothesis import settings

settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
