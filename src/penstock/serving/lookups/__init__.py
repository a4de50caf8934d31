"""Questions out: rows of tables and values of states, each with its position and its age."""
