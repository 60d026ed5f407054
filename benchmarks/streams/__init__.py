"""Streams groups of ottla beside those of Apache Kafka: start, scaling, heartbeats, and the assignor."""
