"""What a gateway shows: tables in memory, and the workers that own the states."""
