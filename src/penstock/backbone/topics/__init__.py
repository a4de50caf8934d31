"""Topics as they are declared and as they are, and ranges of them."""
