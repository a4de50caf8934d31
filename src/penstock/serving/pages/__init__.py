"""Pages of an application."""
