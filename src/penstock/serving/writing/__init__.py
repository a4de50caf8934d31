"""The way onto the log that all rooms share: records parsed, written, acknowledged; once."""
