"""Read the checkpoint and the progress of a query."""
