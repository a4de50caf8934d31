"""The application as a value: its data, its parts, and how records flow between them."""
