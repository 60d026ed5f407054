"""Share groups of ottla beside Apache Kafka's."""
