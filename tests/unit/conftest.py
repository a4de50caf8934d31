"""How Hypothesis is used here: by what holds, never by how long an example took.

A test that wants more or fewer examples than others says so as a multiple of the profile's number:
``@settings(max_examples=3 * settings().max_examples)``. So ``make chaos`` has twenty times as many.
"""

import os

from hypothesis import settings

settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile("chaos", deadline=None, max_examples=1000)
settings.load_profile("chaos" if os.environ.get("PENSTOCK_CHAOS_SEEDS") else "quick")
