"""The clients of simulated clusters: `ottla.client` itself, on virtual time, doing something from the seed."""
