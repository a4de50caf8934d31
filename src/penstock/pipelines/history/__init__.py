"""Archives of streams in the lake, and pipelines that read them before the log."""
