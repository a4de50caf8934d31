"""A detector for any series of numbers: one value at a time, from what came before alone."""
