"""Evidence: what can be shown of a run afterwards."""
