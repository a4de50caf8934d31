"""From the text of an expression to its syntax."""
