"""What every Kafka client needs: the connection, admin calls, errors, records as bytes."""
