"""Pure rules: records, schemas, topics, the application graph. No clock, no I/O, no Kafka."""
