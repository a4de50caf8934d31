"""Record types: schemas, bytes, how they may change, and what becomes of bad records."""
