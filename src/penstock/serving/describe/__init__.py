"""What a gateway says of itself: OpenAPI 3.1, from the graph and the record types."""
