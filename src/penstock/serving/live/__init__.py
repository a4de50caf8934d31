"""Live queries, as clients follow them; docs/live-protocol.md is what is said on a connection."""
