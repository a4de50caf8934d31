"""The ``penstock`` command: one module per verb, each imported only when it is used."""
