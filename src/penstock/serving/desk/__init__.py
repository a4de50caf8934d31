"""A small server in a thread of its own, for what a command tells of itself."""
