"""Which program made a checkpoint, and whether the current program may continue it."""
