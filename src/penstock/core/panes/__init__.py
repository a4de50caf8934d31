"""Windows, triggers and panes: the semantics every engine runs."""
