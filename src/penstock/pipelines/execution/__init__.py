"""A pipeline that runs: as a stream that is kept going, or over a finished range."""
