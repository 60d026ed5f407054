"""Groups, offsets and transactions of ottla beside Apache Kafka's."""
