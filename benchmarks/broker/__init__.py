"""ottla beside Apache Kafka, as brokers: start, throughput, latency, processor time and memory."""
