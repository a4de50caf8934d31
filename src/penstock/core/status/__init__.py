"""What running parts say about themselves, and how it is exported."""
