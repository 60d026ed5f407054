"""What a node says of itself, and what its clients say of themselves: metrics, log lines, the inspect listener."""
