"""How the parts of a graph hang together: by name, what each computes, where results go."""
