"""What views ask of running services and of tables, and show as rows."""
