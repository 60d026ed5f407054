"""Pages about Kafka's protocol: what each message, record type and error is for, and what its bytes look like."""
