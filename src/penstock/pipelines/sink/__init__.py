"""From a pipeline's DataFrame to topics and lake tables, exactly once."""
