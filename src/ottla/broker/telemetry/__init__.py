"""Telemetry of a node and of its clients: metrics, log lines, the inspect listener."""
