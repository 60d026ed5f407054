"""TLS and SASL for both ends, clients and brokers: key stores, contexts, conversations, names of users."""
