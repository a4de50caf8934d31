"""The embedded broker: real Apache Kafka in a directory of the project."""
