"""Java and the jars that run on it: found, fetched and verified."""
