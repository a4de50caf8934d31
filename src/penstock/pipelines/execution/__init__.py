"""Run a pipeline: as a stream that is restarted after failures, or over a finished range."""
