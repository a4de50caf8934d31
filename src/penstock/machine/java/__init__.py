"""Find Java; fetch and verify the jars."""
