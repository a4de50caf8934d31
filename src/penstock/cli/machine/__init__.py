"""Verbs about this machine and its settings: doctor, jars, config, bundle, export."""
