"""Aggregates. A module here is one aggregate, or a small family: all that any engine knows of it.

``aggregate.py`` says what a module declares, ``own.py`` takes the combiners of users.
"""
