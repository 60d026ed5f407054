"""Topics by network: the format `ottla`."""
