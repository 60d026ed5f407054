"""The format `ottla` as a source: topics over the network."""
